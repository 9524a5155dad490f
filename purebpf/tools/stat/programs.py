"""The counts of events while BPF programs run (bpf_src/program_counts.bpf.c)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from purebpf import objects
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.host import cpus
from purebpf.loader.load.load import load
from purebpf.loader.load.object import Object
from purebpf.loader.programs.attach_target import main_function
from purebpf.loader.programs.program import Program
from purebpf.measure.targets import NoSuchTargetError
from purebpf.observe.instruments.quiesce import settle
from purebpf.results import Cause, count_cause
from purebpf.tools.stat.counts import CountedEvent
from purebpf.tools.stat.opening import OpenCounter

__all__ = ["MOST_EVENTS", "RUNS", "ProgramCounts"]

MOST_EVENTS = 64
"""Of bpf_src/program_counts.bpf.c."""
RUNS = CountedEvent("runs", "", "", -1)
_PROGRAMS = ("program_begins", "program_ends")

Times = tuple[int, int, int]
"""The count, and the nanoseconds that the event was enabled and on a counter."""


class ProgramCounts:
    """Reads counters at the start and the end of each run of programs, from `start()` on.

    Args:
        ids: of the programs.
        counters: per-CPU counters that are open, with the numbers of their events.
        stack: closes all resources.

    Attributes:
        keys: the label of each program, in their order.
        runs: the event that each program has before the others: how often it ran.

    Raises:
        NoSuchTargetError: there is no program of this ID.
        NotSupportedError: a program without BTF, or of a kind that cannot be watched.
        KernelError: the kernel refused. Needs trampolines (Linux 5.5 to watch programs, commit
            5b92a28aae4d, "bpf: Support attaching tracing BPF program to other BPF programs").
    """

    runs = RUNS

    def __init__(
        self, ids: Iterable[int], counters: Sequence[OpenCounter], stack: ExitStack
    ) -> None:
        self.keys: list[str] = []
        self._watched: list[Object] = []
        self._events = 1 + max(opened.number for opened in counters)
        if self._events > MOST_EVENTS:
            raise NotSupportedError("purebpf stat -b", f"it counts at most {MOST_EVENTS} events")
        for program_id in ids:
            self._watch(program_id, counters, stack)

    def _watch(self, program_id: int, counters: Sequence[OpenCounter], stack: ExitStack) -> None:
        try:
            target = stack.enter_context(Program.from_id(program_id))
        except KernelError as error:
            raise NoSuchTargetError(f"no BPF program has ID {program_id}") from error
        function = main_function(target)
        limit = 1 + max(cpus.possible())
        spec = objects.spec("program_counts").only(*_PROGRAMS)
        spec = spec.set(events=self._events, cpu_limit=limit)
        spec = spec.resize(counters=limit * self._events, starts=self._events, sums=self._events)
        spec = spec.target(**dict.fromkeys(_PROGRAMS, function))
        watched = stack.enter_context(load(spec, targets=dict.fromkeys(_PROGRAMS, target)))
        for opened in counters:
            index = opened.number * limit + opened.place.cpu
            watched.maps["counters"][index] = opened.counter
        for name in reversed(_PROGRAMS):  # a run that began before has no start
            stack.enter_context(watched.programs[name].attach())
        self._watched.append(watched)
        self.keys.append(f"{function}-{program_id}")

    def start(self) -> None:
        """Begin."""
        for watched in self._watched:
            watched.globals["phase"] = True

    def stop(self) -> None:
        """End; the counts stay readable."""
        for watched in self._watched:
            watched.globals["phase"] = False
        settle()

    def rows(self) -> list[tuple[int, str]]:
        """Return the keys of `read`: the number of an event, 0 for RUNS, and the key of its
        program.
        """
        return [(number, key) for key in self.keys for number in range(self._events + 1)]

    def read(self) -> list[Times]:
        """Return the counts until now.

        Raises:
            KernelError: a map cannot be read.
        """
        return [times for watched in self._watched for times in _read(watched)]

    def causes(self) -> tuple[Cause, ...]:
        """Return the causes of loss, zero or not.

        Raises:
            KernelError: a map cannot be read.
        """
        missed = sum(_sum(watched, "missed") for watched in self._watched)
        unread = sum(_sum(watched, "unread") for watched in self._watched)
        skipped = sum(
            program.info.recursion_misses
            for watched in self._watched
            for program in watched.programs.values()
        )
        return (
            count_cause(
                "runs_missed",
                missed + skipped,
                "runs were not counted: they interrupted another one",
            ),
            count_cause("unread", unread, "readings were refused by the kernel"),
        )


def _sum(watched: Object, field: str) -> int:
    return sum(getattr(run, field) for run in watched.maps["here"][0])


def _read(watched: Object) -> Iterable[Times]:
    yield _sum(watched, "runs"), 0, 0
    readings: Any
    for readings in watched.maps["sums"].values():
        yield (
            sum(reading.counter for reading in readings),
            sum(reading.enabled for reading in readings),
            sum(reading.running for reading in readings),
        )
