"""Counts of a set of events that sessions share (`purebpf stat --shared`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from purebpf import objects
from purebpf.errors import NotSupportedError
from purebpf.loader.host import cpus
from purebpf.loader.host.pins import BPFFS
from purebpf.measure.perf_targets import EventPlace
from purebpf.observe.instruments.shared_counts import OpenedEvent, Reading, SharedCounts, Task
from purebpf.results import Cause
from purebpf.results.model.spelling import count_text
from purebpf.syscall import proc
from purebpf.tools.stat.counts import CountedEvent
from purebpf.tools.stat.opening import Opened, choose_events, open_counters
from purebpf.tools.stat.request import Groups

__all__ = ["SharedCounter"]

Rows = list[tuple[int, str]]


class SharedCounter:
    """The counters of `groups` on every CPU, shared with all sessions that count the same.

    Args:
        groups: the events; () for the default.
        places: the CPUs of all tasks, or the processes and threads to count.
        keys: the row of each place.
        threads: places are threads, not processes.
        bpffs: the bpf file system where sessions find one another.
        stack: closes all resources.

    Raises:
        EventError, KernelError, NotSupportedError: as `open_counters` and `SharedCounts`.
    """

    def __init__(
        self,
        groups: Groups,
        places: Sequence[EventPlace],
        keys: Sequence[str],
        *,
        threads: bool,
        bpffs: str,
        stack: ExitStack,
    ) -> None:
        self._groups = groups
        self._places = places
        self._keys = keys
        self._tasks = [Task(place.pid, threads) for place in places if place.pid >= 0]
        if self._tasks and not proc.in_first_namespace("pid"):
            why = "programs see processes by their numbers in the first PID namespace"
            raise NotSupportedError("counting processes with --shared in a PID namespace", why)
        probed = self._probe()
        self.events: tuple[CountedEvent, ...] = probed.events
        self.notes = probed.notes
        self._numbers = [number for number, event in enumerate(self.events) if not event.why_not]
        self._shared = stack.enter_context(
            SharedCounts(self._identity(), len(self._numbers), self._open, bpffs or BPFFS)
        )
        if self._tasks:
            self._shared.follow(self._tasks)
        self.start()

    @property
    def leads(self) -> bool:
        """True if no other session counted this before."""
        return self._shared.leads

    def start(self) -> None:
        """Begin: earlier counts belong to other sessions."""
        self._unread = self._shared.unread()
        self._before = self._readings()

    def _probe(self) -> Opened:
        """Return the events that this machine has: open each once, without counting."""
        with ExitStack() as stack:
            first = [EventPlace(-1, cpus.online()[0])]
            return open_counters(self._groups, first, stack, of_tasks=False, fields={})

    def _identity(self) -> bytes:
        """Return bytes that are equal for equal counters: events by their kernel attributes, and
        CPUs.
        """
        chosen, _ = choose_events(self._groups, of_tasks=False)
        asked = [
            (
                chosen[number].event.group,
                chosen[number].choice.event,
                sorted(chosen[number].choice.attr.items()),
            )
            for number in self._numbers
        ]
        said = repr((asked, cpus.online(), cpus.possible())).encode()
        return hashlib.sha256(objects.read("shared_counts.spec") + said).digest()

    def _open(self, stack: ExitStack) -> Iterator[OpenedEvent]:
        places = [EventPlace(-1, cpu) for cpu in cpus.online()]
        opened = open_counters(self._groups, places, stack, of_tasks=False, fields={})
        for counter in opened.counters:
            if counter.leads:
                counter.counter.enable(group=True)
        for counter in opened.counters:
            if counter.number in self._numbers:
                number = self._numbers.index(counter.number)
                yield OpenedEvent(number, counter.place.cpu, counter.counter)

    def rows(self) -> Rows:
        """Return the keys of `read`: the number of an event, and the key of its row."""
        return [(number, key) for key in self._keys for number in self._numbers]

    def read(self) -> list[Reading]:
        """Return the counts until now, in the order of `rows`.

        Raises:
            KernelError: a map cannot be read.
        """
        readings = zip(self._readings(), self._before, strict=True)
        return [
            (now[0] - before[0], now[1] - before[1], now[2] - before[2]) for now, before in readings
        ]

    def _readings(self) -> list[Reading]:
        if self._tasks:
            of_tasks = self._shared.read_tasks(self._tasks)
            return [reading for task in self._tasks for reading in of_tasks[task]]
        of_cpus = self._shared.read_cpus()
        return [reading for place in self._places for reading in of_cpus[place.cpu]]

    def causes(self) -> tuple[Cause, ...]:
        """Return the causes of loss, zero or not.

        Raises:
            KernelError: a map cannot be read.
        """
        unread = self._shared.unread() - self._unread
        return (Cause("unread", unread, count_text(unread, "readings were refused by the kernel")),)
