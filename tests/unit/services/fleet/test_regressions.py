"""A function that is 10 % slower is found; where nothing changed, nothing is said."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from purebpf.results.formats.otlp import Entry, Sample
from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.decode import decode
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.regressions import Comparison, ComparisonError, compare
from purebpf.services.fleet.render import render_changes
from purebpf.services.fleet.rows import Batch
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.uncertainty import least_z, z_of
from tests.support.host.deliveries import HOUR_S, window_message

FUNCTIONS = 60
SLOW = 4
"""The number of the function that is made slower: 5 % of the time."""


def window(chance: random.Random, host_taste: list[float], slower: float) -> dict[Sample, int]:
    """A minute of 16 busy CPUs at 19 Hz: Zipf, and what this host and minute does more of."""
    weights = [
        taste * chance.lognormvariate(0, 0.1) / (number + 2)
        for number, taste in enumerate(host_taste)
    ]
    weights[SLOW] *= slower
    samples: dict[Sample, int] = {}
    for number, weight in enumerate(weights):
        mean = 16 * 1140 * weight / sum(weights)
        stack = (Entry(f"f{number}", "shop", "user"), Entry("main", "shop", "user"))
        samples[Sample("a", stack)] = max(0, round(chance.gauss(mean, mean**0.5)))
    return samples


def fill(store: Directory, runs: int, *, hosts: int, minutes: int, slower: float) -> None:
    """For each run a service of two builds on hosts of its own, of which one may be slower."""
    batch = Batch({})
    for run in range(runs):
        chance = random.Random(run)
        for host in range(hosts):
            taste = [chance.lognormvariate(0, 0.3) for _ in range(FUNCTIONS)]
            for minute in range(minutes):
                for build in ("ab12", "cd34"):
                    rate = slower if build == "cd34" else 1.0
                    data = window_message(
                        f"{run}-{host}", minute, {f"s{run}": window(chance, taste, rate)},
                        more=(("service.version", build),),
                        identity=f"{run} {host} {minute} {build}".encode().ljust(16),
                    )  # fmt: skip
                    for delivery in decode(data, now_ns=(HOUR_S + 3600) * 10**9):
                        batch.add(delivery)
    land(store, batch, new_batch_id())


@contextmanager
def asked(
    store: Directory, *sides: tuple[tuple[str, str], ...], memory: str = "100MB", most: str = ""
) -> Iterator[list[Question]]:
    """A question for each side, in one database; a side is a list of conditions."""
    with ExitStack() as stack:
        first = stack.enter_context(duck.connect(store, memory, most, threads=1))
        connections = [first, *(stack.enter_context(duck.beside(first, most)) for _ in sides[1:])]
        yield [
            Question(
                store,
                Selection(HOUR_S * 10**6, (HOUR_S + 3600) * 10**6, "cpu", conditions),
                connection,
                by_host=True,
            )
            for conditions, connection in zip(sides, connections, strict=True)
        ]


def builds(store: Directory, service: str) -> Comparison:
    sides = [(("service", service), ("version", build)) for build in ("ab12", "cd34")]
    with asked(store, *sides) as (before, after):
        return compare(before, after)


@pytest.fixture(scope="module")
def same(tmp_path_factory: pytest.TempPathFactory) -> Directory:
    store = Directory(str(tmp_path_factory.mktemp("same")))
    fill(store, 20, hosts=8, minutes=1, slower=1.0)
    return store


def test_twenty_comparisons_of_the_same_find_nothing(same: Directory) -> None:
    for run in range(20):
        found = builds(same, f"s{run}")
        assert found.functions > FUNCTIONS / 2
        assert (found.grew, found.shrank) == ([], []), f"run {run}"
        assert (found.clusters, found.by_window) == ((8, 8), False)


def test_a_function_that_is_ten_percent_slower_is_found(tmp_path: Path) -> None:
    store = Directory(str(tmp_path))
    fill(store, 1, hosts=24, minutes=5, slower=1.1)
    found = builds(store, "s0")
    assert [change.place.name for change in found.grew] == [f"f{SLOW}"]
    (change,) = found.grew
    assert change.at_least > 0
    assert abs(change.after / change.before - 1.1) < 0.04
    text = "".join(render_changes(found, 10))
    assert "f4 [shop]" in text
    assert "24 and 24 hosts differ" in text
    assert max(map(len, text.splitlines())) <= 80


def test_windows_stand_for_few_hosts(same: Directory) -> None:
    with asked(same, (("host", "0-0"),), (("host", "0-1"),)) as (before, after):
        found = compare(before, after)
    assert found.by_window
    assert found.clusters == (1, 1)


def test_a_side_without_samples_is_said(same: Directory) -> None:
    with (
        asked(same, (("service", "s0"),), (("service", "none"),)) as (before, after),
        pytest.raises(ComparisonError, match="no samples after"),
    ):
        compare(before, after)


def test_the_sums_of_both_sides_count_as_memory_of_the_database(same: Directory) -> None:
    """They were tables of Arrow, which no limit holds."""
    with asked(same, (("service", "s0"),), (("service", "s1"),)) as (before, after):
        compare(before, after)
        for question in (before, after):
            assert question.ask(
                "select table_name from duckdb_tables() where table_name like '%_sums' order by 1"
            ) == [("after_sums",), ("before_sums",)]


@pytest.mark.parametrize(
    ("t", "freedom", "z"),
    # both have the same tail, by adding up the density of t in 200,000 steps
    [(2.0, 5, 1.6355), (4.0, 10, 3.0211), (6.0, 30, 4.8258), (3.0, 1000, 2.9925)],
)
def test_few_clusters_make_less_sure(t: float, freedom: int, z: float) -> None:
    assert z_of(t, 1.0, freedom + 1) == pytest.approx(z, abs=0.012)


def test_more_functions_need_more() -> None:
    assert least_z(1) == pytest.approx(3.2905, abs=1e-3)
    assert 4.8 < least_z(1000) < 5.0
