"""The code that the CPUs run, from samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Self

from purebpf.cli.own_functions import describe_own
from purebpf.cli.sheet import SheetRow, Step
from purebpf.measure.stop import HasFileno
from purebpf.results import Profile
from purebpf.results.model.units import weight_in_unit
from purebpf.tools.profile import session
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top import rows
from purebpf.tools.top.render import render
from purebpf.tools.top.screens.base import Reading, Screen

__all__ = ["Cpu", "make", "read_profile"]


class Cpu(Screen):
    """Samples of functions."""

    columns = rows.COLUMNS
    deeper = rows.DEEPER
    heat_unit = "CPUs"

    def __init__(self, options: ProfileOptions, command_pid: int = 0) -> None:
        super().__init__()
        self._profiler = session.Profiler(options, command_pid)
        self.budget = self._profiler.budget
        self._frequency = options.frequency
        self._elapsed_s = self._before_s = 0.0

    def __enter__(self) -> Self:
        self._profiler.__enter__()
        return self

    def wait(self, *ends: HasFileno, at_most_s: float) -> bool:
        """As `Profiler.wait`."""
        return self._profiler.wait(*ends, at_most_s=at_most_s)

    def take(self) -> None:
        """As `Profiler.take`."""
        self._profiler.take()
        now_s = self._profiler.elapsed_s
        self._elapsed_s, self._before_s = now_s - self._before_s, now_s

    def read(self) -> Reading:
        """Return the samples up to the last `take()`."""
        cpus = 1 / (self._frequency * self._elapsed_s)
        return read_profile(self._profiler.last(), cpus, self.heat_unit)

    def stop(self) -> Reading:
        """End it; return the samples of the whole run."""
        return read_profile(self._profiler.stop(), 0.0, self.heat_unit)

    def close(self) -> None:
        """End it without a result; again is harmless."""
        self._profiler.close()


def read_profile(profile: Profile, share: float, unit: str) -> Reading:
    """A reading of stacks; a weight of 1 is `share` of a CPU or thread, the `unit`."""
    return Reading(
        f"{weight_in_unit(profile.total, profile.unit)}, {profile.total * share:.2f} {unit}",
        profile.total * share,
        partial(_rows, profile, share),
        partial(_text, profile),
        profile.loss,
        profile,
    )


def _rows(profile: Profile, share: float, by: str, path: Sequence[Step]) -> list[SheetRow]:
    return rows.rows(profile, by, path, share)


def _text(profile: Profile, heading: str, by: str, sort: str, lines: int) -> Iterable[str]:
    first, *table = render(profile, by=by, lines=lines, heading=heading, sort=sort)
    own = next(describe_own(profile), "").rstrip("\n") if by == "function" else ""
    return [first, *([f"{own}\n"] if own else []), *table]


def make(options: ProfileOptions, _by: str, _interval_s: float, command_pid: int) -> Cpu:
    """The screen."""
    return Cpu(options, command_pid)
