"""Other engines give DuckDB's answers, from the same files and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.engines.engine import open_engine
from purebpf.services.fleet.engines.question import EngineQuestion
from purebpf.services.fleet.engines.translate import translate
from purebpf.services.fleet.stores.store import Store
from tests.support.host.deliveries import HOUR
from tests.support.host.landed import WHOLE_HOUR, fill, put

PACKAGES = {"clickhouse": "chdb", "spark": "pyspark"}


@pytest.mark.parametrize(
    ("dialect", "sum_of", "micros", "first"),
    [
        ("clickhouse", "SUM(CAST(value AS Nullable(Decimal(38, 0))))",
         "intDiv(toUnixTimestamp64Micro(ts), 5)", "frames[1]"),
        ("spark", "SUM(CAST(value AS DECIMAL(38, 0)))", "UNIX_MICROS(ts) DIV 5", "frames[0]"),
    ],
)  # fmt: skip
def test_a_statement_in_another_dialect(dialect: str, sum_of: str, micros: str, first: str) -> None:
    text = translate(
        "with a as materialized (select * from samples) select sum(value), epoch_us(ts) // 5, "
        "frames[1] from (select * from a) join stacks using (stack) group by all",
        dialect,
    )
    assert sum_of in text
    assert micros in text
    assert first in text
    assert "AS part0" in text
    assert "MATERIALIZED" not in text.upper()


@pytest.mark.parametrize("statement", ["drop table samples", "select (", "copy x to 'y'"])
def test_only_what_reads_is_translated(statement: str) -> None:
    with pytest.raises(duck.QueryError):
        translate(statement, "spark")


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(duck.QueryError, match="no engine 'mysql': duckdb, clickhouse, spark"):
        open_engine("mysql")


@pytest.fixture(params=PACKAGES)
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    package = PACKAGES[request.param]
    pytest.importorskip(package, reason=f"{package} is not installed")
    opened = open_engine(request.param)
    yield opened
    opened.close()


def test_answers_are_those_of_duckdb(engine: Any, any_store: Store) -> None:
    store = any_store
    if store.root.startswith("s3:") and type(engine).__name__ == "Spark":
        pytest.skip("pyspark comes without hadoop-aws, which reads buckets")
    fill(store)
    asked: list[Callable[[Question], object]] = [
        lambda question: question.functions(5),
        lambda question: sorted(question.stacks()),
        lambda question: question.total(),
        lambda question: question.values_of("service", 9),
    ]
    by_host: list[Callable[[Question], object]] = [
        lambda question: question.hosts(),
        lambda question: question.timeline(60_000_000),
        lambda question: question.table("select count(*) from samples")[1],
    ]  # fmt: skip
    for where in ((), (("host", "host1"),), (("comm", "a"), ("service", "web"))):
        selection = WHOLE_HOUR._replace(where=where)
        for is_by_host, questions in ((False, asked), (True, by_host)):
            with duck.connect(store) as mine, duck.connect(store) as other:
                ours = Question(store, selection, mine, by_host=is_by_host)
                theirs = EngineQuestion(store, selection, other, engine, by_host=is_by_host)
                for number, question in enumerate(questions):
                    assert question(theirs) == question(ours), number
                assert theirs.coverage() == ours.coverage()
                assert theirs.left_out == ()
    put(store, 1, 3)
    with duck.connect(store) as other:
        assert EngineQuestion(store, WHOLE_HOUR, other, engine).left_out == (HOUR,)
