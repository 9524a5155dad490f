"""Opens a question of the command line, and turns its answer into lines."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

from purebpf.services.fleet import duck, render
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.coverage import Coverage
from purebpf.services.fleet.profiles import describe
from purebpf.services.fleet.request import FleetOptions, Query
from purebpf.services.fleet.rows import COLUMNS
from purebpf.services.fleet.selection import Selection, check_kind, parse_range
from purebpf.services.fleet.steps import steps_of
from purebpf.services.fleet.stores.opening import open_store

__all__ = ["answer_lines", "ask", "select", "statement_lines"]

_STEPS = 40
_BY_HOST = ("hosts", "sql", "regressions")


@contextmanager
def ask(
    options: FleetOptions,
    side: tuple[tuple[str, str], ...] = (),
    beside: Question | None = None,
) -> Iterator[Question]:
    """A question about the samples that the options choose.

    Args:
        options: the request.
        side: conditions that go before its own; "since", "until" and "kind" among them.
        beside: a question to compare with, in whose database this one is.

    Raises:
        SelectionError: there is no such range or kind.
        StoreError: there is no such store, or a manifest is damaged.
        QueryError: a file cannot be read.
    """
    selection = select(options.query, side)
    by_host = options.action in _BY_HOST or (
        options.action == "timeline" and not steps_of(selection, _STEPS).are_hours
    )
    store = open_store(options.store)
    opened = duck.connect(store) if beside is None else duck.beside(beside.connection)
    with opened as connection:
        if options.engine == "duckdb" or options.shown:
            yield Question(store, selection, connection, by_host=by_host)
            return
        from purebpf.services.fleet.engines.engine import open_engine
        from purebpf.services.fleet.engines.question import EngineQuestion

        with closing(open_engine(options.engine)) as engine:
            yield EngineQuestion(store, selection, connection, engine, by_host=by_host)


def select(query: Query, side: tuple[tuple[str, str], ...] = ()) -> Selection:
    """The samples that a query means; `side` as in `ask`.

    Raises:
        SelectionError: there is no such range or kind.
    """
    own = dict(side)
    since, until = own.pop("since", query.since), own.pop("until", query.until)
    kind = check_kind(own.pop("kind", query.kind))
    where = {_COLUMN.get(name, name): value for name, value in (*query.where, *own.items())}
    return Selection(*parse_range(since, until, time.time()), kind, tuple(where.items()))


_COLUMN = {"build": "version", **COLUMNS}


def answer_lines(question: Question, options: FleetOptions, coverage: Coverage) -> Iterable[str]:
    """The lines of a table."""
    selection = question.selection
    range_us = selection.until_us - selection.since_us
    yield describe(selection, coverage) + "\n\n"
    if options.action == "top":
        functions = question.functions(options.rows)
        yield from render.render_functions(functions, range_us)
    elif options.action == "hosts":
        yield from render.render_hosts(question.hosts(), range_us, options.rows)
    elif options.action == "timeline":
        steps = steps_of(selection, _STEPS)
        moments = question.timeline(steps.length_us)
        yield from render.render_timeline(moments, steps, options.rows)
    elif options.action == "coverage":
        yield from (
            f"{name.replace('_', ' '):18} {value}\n"
            for name, value in coverage._asdict().items()
            if name != "lost"
        )


def statement_lines(question: Question, options: FleetOptions) -> Iterable[str]:
    """The rows of a statement about the views; or, to be printed, the statement with the views."""
    statement = " ".join(options.words).rstrip().rstrip(";")
    if options.shown and options.engine != "duckdb":
        from purebpf.services.fleet.engines.translate import translate

        yield f"{translate(statement, options.engine.partition(':')[0])};\n"
        return
    if options.shown:
        yield from (f"{view};\n" for view in question.views)
        yield f"{statement};\n"
        return
    names, answer = question.table(statement)
    yield from render.render_rows(names, answer)
