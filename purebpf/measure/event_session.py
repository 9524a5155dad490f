"""A run that prints events as they happen: the common parts of `exec`, `open` and others."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from purebpf.closable import Closing
from purebpf.measure import targets, wait
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import TargetEnds, follow_descendants
from purebpf.observe.instruments.event_stream import EventStream, Record, StreamRequest
from purebpf.observe.instruments.process_tree import CAPACITY
from purebpf.results import Loss, count_cause
from purebpf.syscall import host_clock
from purebpf.tuples import NamedTuple

__all__ = ["Ending", "EventSession", "EventTarget", "loss_of"]

Event = TypeVar("Event")

_QUIET_S = 0.02
"""Between two looks at the ring: a burst is read in batches, not event by event."""
_COMMON = {
    "events_full": "events were dropped: the ring was full. Narrow the target, or write to a file",
    "children_missed": f"new processes were not followed: more than {CAPACITY} lived at once",
    "recursion_misses": "recursion misses: the kernel does not run a program inside itself",
}


class EventTarget(targets.Target, Protocol):
    """Whom to follow, and for how long."""

    @property
    def tree(self) -> bool:
        """True if children of `pids` count."""

    @property
    def duration_s(self) -> float | None:
        """None: until a signal, or until the command or all of `pids` end."""


class Ending(NamedTuple, Generic[Event]):
    """The events since the last `drain()`, and the losses of the whole run."""

    events: tuple[Event, ...]
    loss: Loss


class EventSession(Closing, ABC, Generic[Event]):
    """Follows events from when its context is entered until `stop()`; `drain()` reads in between.

    Args:
        target: of whom.
        command_pid: a child that waits to execute a command (`purebpf.measure.child`).

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread, CPU or cgroup that does not exist.
        KernelError, NotSupportedError: as `EventStream`.

    Attributes:
        explained: a sentence for each field of the object's `struct losses`, as `loss_of` takes
            them.
    """

    explained: ClassVar[Mapping[str, str]]

    def __init__(self, target: EventTarget, command_pid: int = 0) -> None:
        self._target = target
        self._command_pid = command_pid
        self._owned = ExitStack()
        self._drained_at = 0.0

    @abstractmethod
    def request(self) -> StreamRequest:
        """The programs to load."""

    @abstractmethod
    def make_event(self, record: Record) -> Event | None:
        """Return the event of a record; None: it was not requested."""

    def finish(self) -> Iterable[Event]:
        """Return the facts that are available only at the end of the run."""
        return ()

    def __enter__(self) -> Self:
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._attach_programs(stack)
            self._owned = stack.pop_all()
        return self

    def _attach_programs(self, stack: ExitStack) -> None:
        target = self._target
        with targets.make_task_filter(target, command_pid=self._command_pid) as whose:
            # the clock of records is the one of host_clock.monotonic_ns()
            self._epoch_ns = time.time_ns() - host_clock.monotonic_ns()
            stream = EventStream(self.request(), whose, tree=target.tree)
            self.stream = stack.enter_context(stream)
        if target.tree and target.pids:
            follow_descendants(target.pids, stream.follow)
        self._ends = stack.enter_context(TargetEnds(target.pids))
        self.begin(stack)
        self._started_s = time.monotonic()

    def begin(self, owned: ExitStack) -> None:
        """Start the remaining parts of the run after the programs are attached; `owned` closes
        them.
        """

    def sources(self) -> Collection[int]:
        """Return the descriptors that are readable when `drain()` is due, besides the ring's."""
        return ()

    def pause_s(self) -> float:
        """After how long `drain()` is due at the latest."""
        return math.inf

    def wall_ns(self, time_ns: int) -> int:
        """The time of a record as nanoseconds since 1970."""
        return time_ns + self._epoch_ns

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until the run is over: True. False: there are events to `drain()`."""
        over = None
        if self._target.duration_s is not None:
            over = self._started_s + self._target.duration_s
        quiet = self._drained_at + _QUIET_S
        if wait.until(over, ends, pause=quiet, targets=self._ends):
            return True
        return wait.until(
            over,
            ends,
            pause=max(quiet, self._drained_at + self.pause_s()),
            targets=self._ends,
            sources={self.stream.fileno(), *self.sources()},
            drain=lambda: True,
        )

    def drain(self) -> Iterator[Event]:
        """The events that came since the last call."""
        self._drained_at = time.monotonic()
        for record in self.stream.drain():
            event = self.make_event(record)
            if event is not None:
                yield event

    def stop(self) -> Ending[Event]:
        """End it, and close.

        Raises:
            KernelError: the kernel refused to report the losses.
        """
        with self._owned:
            return self.end()

    def end(self) -> Ending[Event]:
        """End it without closing it. Raises as `stop` does."""
        self.stream.stop()
        events = (*self.drain(), *self.finish())
        return Ending(events, loss_of(self.stream.losses(), self.explained))

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()


def loss_of(counts: Mapping[str, int], own: Mapping[str, str]) -> Loss:
    """Every cause, zero or not.

    Args:
        counts: `EventStream.losses()`.
        own: a sentence for each cause that only this tool has, which begins with a plural; after
            "note: " if it does not make the result incomplete.
    """
    causes = []
    for name, text in (*own.items(), *_COMMON.items()):
        what = text.removeprefix("note: ")
        count = counts[name]
        causes.append(count_cause(name, count, what, what is not text))
    return Loss(causes=tuple(causes))
