"""Rows of a part of a run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from purebpf.tuples import NamedTuple

__all__ = ["Counted", "Interval", "subtract"]


class Counted(Protocol):
    """A named tuple of counts, with a histogram."""

    @property
    def buckets(self) -> Sequence[int]:
        """Counts; empty: none."""

    def _asdict(self) -> Mapping[str, Any]: ...


Row = TypeVar("Row")
CountedRow = TypeVar("CountedRow", bound=Counted)


class Interval(NamedTuple, Generic[Row]):
    """The counts since the last interval.

    Attributes:
        time_ns: of its end, since 1970.
        elapsed_s: how long it was.
    """

    time_ns: int
    elapsed_s: float
    rows: tuple[Row, ...]


def subtract(
    now: Iterable[CountedRow],
    before: Iterable[CountedRow],
    key: Callable[[CountedRow], Hashable],
    fields: Sequence[str],
) -> list[CountedRow]:
    """Return the rows that grew in one of `fields`, less their earlier values."""
    earlier = {key(row): row for row in before}
    changed = []
    for row in now:
        named_tuple: Any = row
        old = earlier.get(key(row))
        if old is None:
            changed.append(row)
            continue
        values, less = row._asdict(), old._asdict()
        counts = {name: max(0, values[name] - less[name]) for name in fields}
        if any(counts.values()):
            counts_of = old.buckets or [0] * len(row.buckets)
            buckets = tuple(a - b for a, b in zip(row.buckets, counts_of, strict=True))
            changed.append(named_tuple._replace(buckets=buckets, **counts))
    return changed
