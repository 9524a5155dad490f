"""The longest wait of an interval: the kernel keeps the longest of the whole run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol, TypeVar

from purebpf.results.shape.histogram import percentile

__all__ = ["with_longest"]


class Waited(Protocol):
    """A row of waits."""

    @property
    def max_ns(self) -> int:
        """The longest since the run began."""

    @property
    def buckets(self) -> tuple[int, ...]:
        """The waits by their length."""

    def _replace(self, *, max_ns: int) -> Waited: ...


WaitedRow = TypeVar("WaitedRow", bound=Waited)


def with_longest(
    changed: Iterable[WaitedRow],
    before: Iterable[WaitedRow],
    key: Callable[[WaitedRow], Hashable],
) -> list[WaitedRow]:
    """Rows of an interval with the longest wait of that interval.

    A longest wait that was there before belongs to an earlier interval. The histogram tells the
    longest of this one then: at most a quarter too high or a fifth too low.

    Args:
        changed: the rows less their values at the start of the interval.
        before: the rows at the start of the interval.
        key: identifies a row.
    """
    earlier = {key(row): row.max_ns for row in before}
    rows: list[WaitedRow] = []
    for row in changed:
        if row.max_ns > earlier.get(key(row), 0):
            rows.append(row)
        else:
            longest = percentile(row.buckets, 100, most=row.max_ns)
            rows.append(row._replace(max_ns=longest or 0))  # type: ignore[arg-type]
    return rows
