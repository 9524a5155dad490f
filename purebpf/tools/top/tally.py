"""Counted times as rows of the screen: system calls, waits, runs. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from purebpf.cli.sheet import Column, SheetRow, Step
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import count_in_unit, in_unit
from purebpf.results.model.width import cut
from purebpf.results.shape.histogram import percentile
from purebpf.tuples import NamedTuple

__all__ = ["Tally", "columns", "differences", "merge", "rows", "text"]

_WIDTH = 80


class Tally(NamedTuple):
    """The number and the duration of some events. Times in nanoseconds.

    Attributes:
        owner, owner_name: the group of the item: a process, a kind; () and "" where it has none.
        item, name: the subject.
        errors, max_ns: 0 where they are not counted.
        buckets: of durations, see `purebpf.results.shape.histogram`; () if there are none.
    """

    owner: Hashable
    owner_name: str
    item: Hashable
    name: str
    number: int
    total_ns: int
    errors: int = 0
    max_ns: int = 0
    buckets: Sequence[int] = ()


def columns(count: str, *, errors: bool = False) -> tuple[Column, ...]:
    """The columns of tallies of so named things: with errors and the longest, or the 99th
    percentile.
    """
    last = ("total", "avg", "max") if errors else ("total", "avg", "p99")
    middle = (Column("errors", 7),) if errors else ()
    return (Column(count, 8), *middle, *(Column(name, 8) for name in last))


def merge(tallies: Iterable[Tally], *, by_owner: bool = False) -> list[Tally]:
    """One tally for each owner and item, or for each owner."""
    merged: dict[Hashable, Tally] = {}
    for tally in tallies:
        row_key = tally.owner if by_owner else (tally.owner, tally.item)
        tally_row = merged.get(row_key)
        merged[row_key] = tally if tally_row is None else _add(tally_row, tally)
    return list(merged.values())


def _add(one: Tally, other: Tally) -> Tally:
    if one.buckets and other.buckets:
        buckets: Sequence[int] = tuple(map(sum, zip(one.buckets, other.buckets, strict=True)))
    else:
        buckets = one.buckets or other.buckets
    return one._replace(
        number=one.number + other.number,
        total_ns=one.total_ns + other.total_ns,
        errors=one.errors + other.errors,
        max_ns=max(one.max_ns, other.max_ns),
        buckets=buckets,
    )


def differences(now: Iterable[Tally], before: Iterable[Tally]) -> Iterator[Tally]:
    """Yield the differences between two readings of sums since a start."""
    earlier = {(tally.owner, tally.item): tally for tally in before}
    for tally in now:
        old = earlier.get((tally.owner, tally.item))
        if old is not None:
            buckets = zip(tally.buckets, old.buckets or [0] * len(tally.buckets), strict=True)
            tally = tally._replace(  # noqa: PLW2901
                number=tally.number - old.number,
                total_ns=max(0, tally.total_ns - old.total_ns),
                buckets=tuple(count - less for count, less in buckets),
            )
        if tally.number or tally.total_ns:
            yield tally


def rows(
    tallies: Sequence[Tally], path: Sequence[Step], *, by_owner: bool = False
) -> list[SheetRow]:
    """A row for each item, of all or of the owner that was looked into; or for each owner."""
    whole = sum(tally.total_ns for tally in tallies)
    if path:
        tallies = [tally for tally in tallies if tally.owner == path[-1].key]
    elif by_owner:
        merged = merge(tallies, by_owner=True)
        return [_row(tally.owner, tally.owner_name, tally, whole) for tally in merged]
    return [_row((tally.owner, tally.item), tally.name, tally, whole) for tally in tallies]


def _row(key: Hashable, name: str, tally: Tally, whole: int) -> SheetRow:
    average = tally.total_ns / tally.number if tally.number else 0.0
    counts, times = [tally.number], [tally.total_ns, average]
    if tally.buckets:
        times.append(percentile(tally.buckets, 99) or 0)
    else:
        counts.append(tally.errors)
        times.append(tally.max_ns)
    cells = (*(count_in_unit(count, 6) for count in counts), *map(in_unit, times))
    return SheetRow(key, name, (*counts, *times), cells, tally.total_ns / (whole or 1))


def text(
    heading: str, heads: Sequence[Column], by: str, sheet_rows: Sequence[SheetRow], lines: int
) -> Iterator[str]:
    """A table for a file or a pipe: the heading, the columns, and the first `lines` rows."""
    yield f"{heading}\n"
    yield f"{''.join(f'{column.name:>{column.width}} ' for column in heads)} {by}\n"
    for row in sheet_rows[:lines]:
        cells = (f"{cell:>{column.width}} " for cell, column in zip(row.cells, heads, strict=True))
        yield f"{cut(''.join(cells) + ' ' + printable(row.name), _WIDTH)}\n"
    if len(sheet_rows) > lines:
        room = sum(column.width + 1 for column in heads)
        yield f"{'':{room}} and {len(sheet_rows) - lines} more\n"
