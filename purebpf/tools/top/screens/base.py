"""The interface of each screen of top: a measurement, and rows of its reading."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import ClassVar, Self

from purebpf.cli.sheet import Column, SheetRow, State, Step, arrange
from purebpf.closable import Closing
from purebpf.measure import wait
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import TargetEnds
from purebpf.results import Loss, Profile
from purebpf.results.model.units import in_unit
from purebpf.symbols.budget import Budget
from purebpf.tools.top import tally
from purebpf.tools.top.tally import Tally
from purebpf.tuples import NamedTuple

__all__ = ["Reading", "Screen", "Tallies"]


class Reading(NamedTuple):
    """The measurements of an interval, or of a whole run.

    Attributes:
        summary: how much it is.
        heat: the same as a number for the line of the last minute.
        rows: the rows of a screen by a kind of row, inside the current path.
        text: a table for a file, of a heading, `by`, a sort and a number of lines.
        loss: its losses.
        profile: the stacks, for screens that have stacks.
    """

    summary: str
    heat: float
    rows: Callable[[str, Sequence[Step]], list[SheetRow]]
    text: Callable[[str, str, str, int], Iterable[str]]
    loss: Loss = Loss()
    profile: Profile | None = None


class Screen(Closing, ABC):
    """Measures from when its context is entered until `stop()`; `read()` reads in between.

    Attributes:
        columns: of its rows.
        heat_unit: the unit of the line of the last minute.
        deeper: the kind of rows one level below a kind.
        reloads: whether other programs are loaded for rows of another kind.
        budget: pays for names.
    """

    columns: ClassVar[tuple[Column, ...]]
    heat_unit: ClassVar[str]
    deeper: ClassVar[Mapping[str, str]] = {}
    reloads: ClassVar[bool] = False

    def __init__(self) -> None:
        self.budget = Budget()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def wait(self, *ends: HasFileno, at_most_s: float) -> bool:
        """Sleep for so long: False; or until the run is over: True."""

    def take(self) -> None:
        """Store the measurements since the last `read()`, which may name them later."""

    @abstractmethod
    def read(self) -> Reading:
        """Return the measurements since the last call of this."""

    @abstractmethod
    def stop(self) -> Reading:
        """End it; return the measurements of the whole run."""


class Tallies(Screen):
    """A screen of tallies, which adds up the tallies of intervals.

    Args:
        pids: with the last of them, the run is over.
        duration_s: after which it is over; None: never.
    """

    def __init__(self, pids: tuple[int, ...], duration_s: float | None) -> None:
        super().__init__()
        self._pids, self._duration_s = pids, duration_s
        self._whole: list[Tally] = []
        self._owned = ExitStack()

    @abstractmethod
    def start(self, stack: ExitStack) -> None:
        """Load and attach; `stack` closes all resources."""

    @abstractmethod
    def tallies(self) -> tuple[list[Tally], Loss]:
        """Return the tallies since the last call of this, and the losses in all."""

    @abstractmethod
    def end(self) -> tuple[list[Tally], Loss]:
        """The same for the last time."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.start(stack)
            self._ends = stack.enter_context(TargetEnds(self._pids))
            self._owned = stack.pop_all()
        self._started_s = self._read_s = time.monotonic()
        return self

    def wait(self, *ends: HasFileno, at_most_s: float) -> bool:
        """Sleep for so long: False; or until the run is over: True."""
        over = None if self._duration_s is None else self._started_s + self._duration_s
        pause = time.monotonic() + at_most_s
        return wait.until(over, ends, pause=pause, targets=self._ends)

    def read(self) -> Reading:
        """Return the measurements since the last call of this."""
        tallies, loss = self.tallies()
        self._whole = tally.merge([*self._whole, *tallies])
        now_s = time.monotonic()
        elapsed_s, self._read_s = now_s - self._read_s, now_s
        return self._reading(tallies, loss, elapsed_s)

    def stop(self) -> Reading:
        """End it; return the measurements of the whole run."""
        with self._owned:
            tallies, loss = self.end()
            self._whole = tally.merge([*self._whole, *tallies])
            return self._reading(self._whole, loss, time.monotonic() - self._started_s)

    def close(self) -> None:
        """End it without a result; again is harmless."""
        self._owned.close()

    def _reading(self, tallies: list[Tally], loss: Loss, elapsed_s: float) -> Reading:
        return _read(tallies, loss, elapsed_s, self.columns, self.deeper)


def _read(
    tallies: list[Tally],
    loss: Loss,
    elapsed_s: float,
    heads: tuple[Column, ...],
    owners: Collection[str],
) -> Reading:
    """A reading of tallies; kinds of rows in `owners` are not of items."""
    count, total_ns = sum(one.number for one in tallies), sum(one.total_ns for one in tallies)

    def rows(by: str, path: Sequence[Step]) -> list[SheetRow]:
        return tally.rows(tallies, path, by_owner=by in owners)

    def text(heading: str, by: str, sort: str, lines: int) -> Iterable[str]:
        arranged = arrange(State(by, sort), heads, rows(by, ()))
        return tally.text(f"{heading}: {summary}", heads, by, arranged, lines)

    summary = f"{count} {heads[0].name}, {in_unit(total_ns)}"
    return Reading(summary, count / (elapsed_s or 1), rows, text, loss)
