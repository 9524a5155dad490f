"""The live part: load, attach, and read samples or counts."""

from __future__ import annotations

import errno
import mmap
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

from purebpf import objects
from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.loader.load.load import load
from purebpf.loader.perf.expected_samples import samples_due
from purebpf.loader.perf.inheritance import inherited_by_threads
from purebpf.loader.perf.perf_event import Event, PerfEvent, Reading
from purebpf.loader.rings.perf_buffer import PerfBuffer
from purebpf.loader.rings.record_types import decoder
from purebpf.measure import targets, wait
from purebpf.measure.limits import raise_open_files
from purebpf.measure.perf_targets import EventPlace, places
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import first_pids, follow_descendants
from purebpf.measure.targets import PidNamespace
from purebpf.observe.instruments import process_tree
from purebpf.observe.instruments.own_program import OwnProgram
from purebpf.observe.instruments.stack_maps import sum_up
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.observe.processes.process_tracker import Followed
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.results import Loss, count_cause
from purebpf.results.shape.naming_loss import with_naming
from purebpf.spec import ObjectSpec
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.budget import Budget
from purebpf.symbols.frame import Frame, Unknown
from purebpf.tools.sampleip.loss import losses
from purebpf.tools.sampleip.ranges import resolve
from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.tools.sampleip.slab_objects import Objects, read_objects
from purebpf.tuples import NamedTuple

__all__ = ["IpCounts", "Sample", "Sampler"]

_ROUND_S = 0.25
_SLAB_ADDRESSES, _SLAB_CACHES = 4096, 1024


class Sample(NamedTuple):
    """A `struct ip_event`, its bytes as they came, and where it was."""

    event: Any
    data: bytes
    where: Frame | Unknown


class IpCounts(NamedTuple):
    """The result of a run: rows of address, pid (0: the kernel's), count, place; and its loss.

    `program` is a sentence about the user's own program, or "". `slabs` has the objects that the
    registers led to by kernel address, where they were asked for and the kernel knows.
    """

    rows: tuple[tuple[int, int, int, Frame | Unknown], ...]
    stats: dict[str, int]
    loss: Loss
    program: str = ""
    slabs: Mapping[int, Objects] = {}


class Sampler(Closing):
    """Samples from when its context is entered until `stop()`.

    Args:
        options: the measurement.
        command_pid: the child that waits to execute the command; 0: none.
        has_slabs: counts note the slab objects that registers lead to.

    Attributes:
        budget: pays for the names; after `budget.stop()`, frames without a name so far stay
            unnamed.

    Raises, when it is entered; nothing stays open then:
        NoSuchRangeError: a function or module that is not there.
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused something; the message says why, and names a fix.
    """

    def __init__(
        self, options: SampleIpOptions, command_pid: int = 0, *, has_slabs: bool = False
    ) -> None:
        self._options, self._has_slabs = options, has_slabs
        self._command_pid = command_pid
        self._tree: process_tree.ProcessTree | None = None
        self._own: OwnProgram | None = None
        self._owned = ExitStack()
        self.budget = Budget()

    @property
    def event(self) -> Event:
        """The name of the event, with the reason when it is not CPU cycles."""
        return self._events[0].event

    @property
    def spaces(self) -> AddressSpaces:
        """The mapped files of the sampled processes."""
        return self._followed.spaces

    def __enter__(self) -> Self:
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._attach(stack)
            self._owned = stack.pop_all()
        return self

    def _attach(self, stack: ExitStack) -> None:
        options = self._options
        ranges = resolve(options)
        follows = bool(self._command_pid or (options.tree and options.pids))
        self._by_tree = options.comm is not None or (follows and process_tree.is_supported())
        targets.check_processes(options.pids, thread_option="-t")
        selected = options._replace(uid=None)  # the program looks at that
        if self._by_tree:
            selected = selected._replace(pids=())
        where = places(selected, 0 if self._by_tree else self._command_pid)
        raise_open_files()
        self._object = stack.enter_context(load(self._spec(len(ranges))))
        maps = self._object.maps
        if self._by_tree:
            whose = TaskFilter(
                command_pid=self._command_pid,
                namespace=PidNamespace.own(),
                tree=options.tree,
                comm=options.comm,
            )
            self._tree = process_tree.follow(whose, maps, stack, tree=True)
            self._follow(options.pids)
            follow_descendants(options.pids, self._follow)
        for number, (start, last, tgid) in enumerate(ranges):
            maps["ranges"][number] = (start, last, tgid, 0)
        self._buffer: PerfBuffer | None = None
        if not options.counting:
            self._buffer = stack.enter_context(
                PerfBuffer(maps["events"], bytes, pages=options.ring_pages)
            )
            self._decode = decoder(maps["events"], "ip_event").one
        self._followed = stack.enter_context(Followed(self._command_pid))
        self._names = Symbolizer(self._followed.spaces, budget=self.budget)
        self._events = self._open_events(where, stack)
        self._attach_program(stack)
        if self._by_tree or not self._command_pid:  # else execve enables
            for event in self._events:
                event.enable()
        self._started = time.monotonic()
        pids = first_pids(options.pids, tree=options.tree)
        self._followed.snapshot(pids)

    def _attach_program(self, stack: ExitStack) -> None:
        """Attach our program, or a user's own program in front of it."""
        first, rest = _choose_programs()
        program = self._object.programs[rest]
        if self._options.program is None:
            for event in self._events:
                stack.enter_context(program.attach(event, enable=False))
            return
        self._own = stack.enter_context(OwnProgram(self._options.program))
        self._own.attach(self._events, first=self._object.programs[first], rest=program)

    def _follow(self, pids: Collection[int]) -> None:
        self._object.maps["tgids"].update(dict.fromkeys(pids, 1))

    def _spec(self, range_count: int) -> ObjectSpec:
        namespace = PidNamespace.own()
        spec = objects.spec("sampleip")
        if self._by_tree:
            spec = spec.set(has_tgids=True).resize(tgids=process_tree.CAPACITY)
        first, rest = _choose_programs()
        return (
            spec.only(*((first, rest) if self._options.program is not None else (rest,)))
            .set(
                counting=self._options.counting,
                has_slabs=self._has_slabs,
                page_size=mmap.PAGESIZE,
                range_count=range_count,
                has_uid=self._options.uid is not None,
                uid=self._options.uid or 0,
                pid_namespace_dev=namespace.dev,
                pid_namespace_ino=namespace.ino,
            )
            .resize(
                counts=self._options.map_entries,
                slabs=_SLAB_ADDRESSES if self._has_slabs else 1,
                slab_caches=_SLAB_CACHES if self._has_slabs else 1,
            )
        )

    def _open_events(self, where: Iterable[EventPlace], stack: ExitStack) -> list[PerfEvent]:
        options = self._options
        rate = (None, options.period) if options.period else (options.frequency, None)
        event: Event | None = None
        inheritance: dict[str, int] = {}
        if options.pids and not options.tree:
            inheritance = inherited_by_threads()
        elif not self._by_tree and (options.pids or self._command_pid):
            inheritance = {"inherit": 1}
        opened: list[PerfEvent] = []
        gone: KernelError | None = None
        for place in where:
            try:
                one = PerfEvent.sampling(
                    *rate, event=event, pid=place.pid, cpu=place.cpu, cgroup=place.cgroup,
                    disabled=1, inherit=inheritance.get("inherit", 0),
                    inherit_thread=inheritance.get("inherit_thread", 0),
                    enable_on_exec=int(bool(self._command_pid) and not self._by_tree),
                )  # fmt: skip
            except KernelError as error:
                if error.errno != errno.ESRCH:
                    raise
                gone = error  # a thread that ended in between
                continue
            event = one.event
            opened.append(stack.enter_context(one))
        if gone is not None and not opened:
            raise gone
        return opened

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep until samples may have come.

        Returns:
            Whether the run is over: the duration has passed, or one of `ends` is readable.
        """
        duration_s = self._options.duration_s
        return wait.until(
            None if duration_s is None else self._started + duration_s,
            ends,
            pause=time.monotonic() + _ROUND_S,
            sources=() if self._buffer is None else {self._buffer.fileno()},
            drain=lambda: True,
        )

    def drain(self) -> list[Sample]:
        """The samples that came since the last time, in the order of time.

        In counting mode there are none, and only processes are followed.
        """
        self._followed.drain()
        return self._drain()

    def _drain(self) -> list[Sample]:
        if self._buffer is None:
            return []
        came = [(self._decode(data), data) for data in self._buffer.drain()]
        came.sort(key=lambda pair: pair[0].time_ns)
        return [
            Sample(event, data, self._place(event.ip, event.tgid, event.comm))
            for event, data in came
        ]

    def _place(self, ip: int, tgid: int, comm: str | None) -> Frame | Unknown:
        if ip >> 63:
            return self._names.kernel([ip])[0]
        return self._names.user(tgid, [ip], comm)[0]

    def stop(self) -> tuple[list[Sample], IpCounts]:
        """End the sampling and close; return the unread samples and the result.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            for event in self._events:
                event.disable()
            readings = [event.read() for event in self._events]
            rest = self.drain()
            stats = sum_up(self._object.maps["stats"])
            program = ""
            if self._own is not None:
                dropped = self._own.count_dropped()
                stats["seen"] += dropped
                program = self._own.describe(dropped)
            rows = tuple(
                (key.ip, key.tgid, count, self._place(key.ip, key.tgid, None))
                for key, count in self._object.maps["counts"].items()
            )
            lost = 0 if self._buffer is None else self._buffer.lost
            loss = self._loss(readings, stats, lost)
            slabs = read_objects(self._object.maps) if self._has_slabs else {}
            return rest, IpCounts(rows, stats, loss, program, slabs)

    def _loss(self, readings: Sequence[Reading], stats: dict[str, int], lost: int) -> Loss:
        due = samples_due(self._events[0].attr, [reading.value for reading in readings])
        inherits = self._command_pid and not self._by_tree
        begun = self._followed.tasks if inherits else len(self._events)
        missed = self._tree.missed if self._tree else 0
        causes = (
            *losses(stats, self._options),
            count_cause("ring_lost", lost, "samples were lost on the way to the reader"),
            count_cause(
                "sideband_lost",
                self._followed.lost,
                "records of new processes and mappings were lost",
            ),
            count_cause(
                "children_missed",
                missed,
                f"child processes were not followed: more than {process_tree.CAPACITY} "
                "lived at once, or the map was busy",
            ),
        )
        loss = Loss(due, stats["seen"], begun + (due or 0) // 100, causes)
        return with_naming(loss, self.budget)

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()


def _choose_programs() -> tuple[str, str]:
    """Return the names of the programs before and behind a user's own program."""
    suffix = "_typed" if PidNamespace.own().needs_types() else ""
    return f"is_inside{suffix}", f"on_sample{suffix}"
