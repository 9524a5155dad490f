"""Rows of a part of a run."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.results.model.intervals import subtract


class Row(NamedTuple):
    name: str
    count: int
    total: int
    buckets: tuple[int, ...]


def since(now: list[Row], before: list[Row]) -> list[Row]:
    return subtract(now, before, lambda row: row.name, ("count", "total"))


def test_rows_have_what_came_since():
    before = [Row("a", 2, 20, (1, 1)), Row("b", 1, 5, (0, 1))]
    now = [Row("a", 5, 60, (3, 2)), Row("b", 1, 5, (0, 1)), Row("c", 1, 1, (1, 0))]
    assert since(now, before) == [Row("a", 3, 40, (2, 1)), Row("c", 1, 1, (1, 0))]


def test_waits_that_had_no_histogram_get_one():
    assert since([Row("a", 1, 9, (0, 1))], [Row("a", 0, 4, ())]) == [Row("a", 1, 5, (0, 1))]


def test_nothing_goes_below_zero():
    assert since([Row("a", 3, 4, ())], [Row("a", 2, 6, ())]) == [Row("a", 1, 0, ())]
