"""Samples by function: the table that answers before the samples do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from purebpf.results.model.spelling import spell_location
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["FunctionCounts"]

_SHOWN = 20
_ROOM = 65536


class FunctionCounts:
    """Counts the samples of each function."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._others = 0

    def add(self, where: Frame | Unknown, samples: int = 1) -> None:
        """Count samples in a function; beyond 65,536 functions, in one row for all others."""
        name = spell_location(where, offset=False)
        if name in self._counts or len(self._counts) < _ROOM:
            self._counts[name] += samples
        else:
            self._others += samples

    def lines(self) -> Iterator[str]:
        """The table: the functions with the most samples, and their shares of all samples.

        The functions below the first twenty share a line.
        """
        total = self._counts.total() + self._others
        if not total:
            return
        yield f"{'SAMPLES':>9s} {'SHARE':>6s} FUNCTION\n"
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        for name, samples in ranked[:_SHOWN]:
            yield _line(samples, total, name)
        rest = ranked[_SHOWN:]
        if rest or self._others:
            left = sum(samples for _, samples in rest) + self._others
            yield _line(left, total, f"({len(rest):,} other functions)")
        yield "\n"


def _line(samples: int, total: int, name: str) -> str:
    return f"{samples:9d} {100 * samples / total:5.1f}% {name}\n"
