"""The live part: open, map, copy the records into the file, and complete it."""

from __future__ import annotations

import os
import select
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_type as kind
from purebpf.closable import Closing
from purebpf.errors import FormatError
from purebpf.files.binary_file import DataFile
from purebpf.loader.host import cgroups
from purebpf.loader.perf.expected_samples import samples_due
from purebpf.loader.perf.inheritance import CHILDREN_COUNT
from purebpf.measure import perf_targets, targets, wait
from purebpf.measure.limits import raise_open_files
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.observe.processes import perf_data_headers, synthesized_records
from purebpf.syscall import perf_event as perf
from purebpf.syscall import proc
from purebpf.tools.record import events
from purebpf.tools.record.filters import Filters, processes_to_search
from purebpf.tools.record.loss import Recorded
from purebpf.tools.record.request import RecordOptions
from purebpf.wire.perf_count import count_types
from purebpf.wire.perf_data import Feature
from purebpf.wire.perf_data_features import pack_numbers
from purebpf.wire.perf_data_writer import PerfDataWriter
from purebpf.wire.perf_encode import RecordEncoder
from purebpf.wire.perf_records import Fork, LostSamples, Mmap, Mmap2
from purebpf.wire.perf_ring import frames

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_event import PerfEvent
    from purebpf.observe.instruments.own_program import OwnProgram
    from purebpf.tools.record.live import LiveFile
    from purebpf.tools.record.own_records import OwnRecords
    from purebpf.tools.record.tree import Tree

__all__ = ["Recorder"]

_ROUND_S = 1.0
"""The rings are read at least so often: a reader of the file sorts what came in two rounds."""


class Recorder(Closing):
    """Records from when its context is entered until `stop()`, which lets the file appear.

    Args:
        options: the target and the output file.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).
            Unless the options have another target, it is recorded from its execve on, with
            everything that it forks.

    Raises, when it is entered; nothing stays open then:
        EventError: an event that this machine does not know.
        FilterError: an empty filter, or one with a field that the samples lack.
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused something; the message says why, and names a fix.
    """

    def __init__(self, options: RecordOptions, command_pid: int = 0) -> None:
        self._options = options
        self._followed_pid = command_pid if options.follows_command else 0
        self._types: Counter[int] = Counter()
        self._build_ids = perf_data_headers.BuildIds()
        self._tasks = 1
        self._unreadable = 0
        self._owned = ExitStack()

    def __enter__(self) -> Self:
        with needing("CAP_PERFMON"), ExitStack() as stack:
            self._open(stack)
            self._owned = stack.pop_all()
        return self

    def _open(self, stack: ExitStack) -> None:
        self._note_of_name: tuple[str, ...] = ()
        options = self._options
        self._file = stack.enter_context(DataFile(options.output))
        self._tree = self._follow_tree(stack)
        options = self._options  # a name may have become processes
        event_places = perf_targets.places(options, self._followed_pid)
        of_tree = perf_targets.every_task(options) if self._tree else ()
        raise_open_files()
        self._sampled = events.open_events(options, event_places, stack, of_tree)
        first = self._sampled[0]
        around = perf_targets.side_band_places(event_places)
        self._side_band = events.open_side_band(options, around, first, stack)
        opened = [event for sampled in self._sampled for event in sampled.opened]
        to_search = processes_to_search(options)
        own = self._load_own(stack)
        self._filters = Filters(self._sampled, stack, to_search, self._tree, own)
        # First the small ones: the others would take all that the user may lock.
        self._bands = events.rings(self._side_band, events.side_band_pages(options))
        self._own_records = self._open_own_records(own, opened, stack)
        if self._own_records is not None:
            opened += self._own_records.events
        self._rings = events.rings(opened, options.pages)
        self._epoll = stack.enter_context(select.epoll())
        for event in (*opened, *self._side_band):
            self._epoll.register(event.fileno(), select.EPOLLIN)
        self._watched = {event.fileno() for event in self._side_band}
        for sampled in self._sampled:
            if not sampled.by_tree:  # else they go on when the last process has ended
                self._watched.update(event.fileno() for event in sampled.opened)
        ids = [perf.event_id(event.fileno()) for event in self._side_band]
        recorded = [sampled.describe_recorded() for sampled in self._sampled]
        recorded[0] = first.describe_recorded(ids)
        if self._own_records is not None:
            recorded += self._own_records.describe()
        self._encoder = RecordEncoder(recorded[0].sample_type)
        self._writer = PerfDataWriter(self._file, recorded, self._features())
        self._write_existing()
        self._writer.end_round()  # from here on, the file can be read
        for sampled in self._sampled:
            if sampled.by_tree or not options.follows_command:  # else execve enables
                for event in sampled.opened:
                    event.enable()
        self._file.is_worth_keeping = True
        self._started = time.monotonic()

    def _load_own(self, stack: ExitStack) -> OwnProgram | None:
        """Load the user's own program."""
        self._own: OwnProgram | None = None
        if self._options.program is not None:
            from purebpf.observe.instruments.own_program import OwnProgram

            self._own = stack.enter_context(OwnProgram(self._options.program))
        return self._own

    def _open_own_records(
        self, own: OwnProgram | None, opened: list[PerfEvent], stack: ExitStack
    ) -> OwnRecords | None:
        """Open the events for the records of the user's own program."""
        if own is None or not own.outputs:
            return None
        from purebpf.tools.record.own_records import OwnRecords

        attr = PERF_EVENT_ATTR.unpack(opened[0].attr)
        return OwnRecords(own, attr, (event.cpu for event in opened), stack)

    def _follow_tree(self, stack: ExitStack) -> Tree | None:
        """The processes of the command, or of `--tree`; None: their events are inherited."""
        options = self._options
        pids = options.pids if options.tree else ()
        if not (self._followed_pid or pids or options.comm is not None):
            return None
        from purebpf.tools.record.tree import follow

        if pids:
            targets.check_processes(pids, thread_option="-t")
        if options.comm is not None and events.has_tracepoints(options):
            self._choose_by_name("no program can filter tracepoints in the kernel")
            return None
        tree = follow(self._followed_pid, pids, options.comm, tree=options.tree)
        if tree is None and options.comm is not None:
            self._choose_by_name("this user may load no program that finds the others")
        return tree and stack.enter_context(tree)

    def _choose_by_name(self, why: str) -> None:
        """Record the processes that have the name now.

        Raises:
            NoSuchTargetError: there is none.
        """
        from purebpf.measure.named_targets import processes_named

        name = self._options.comm
        assert name is not None
        self._options = self._options._replace(pids=processes_named(name), comm=None)
        self._note_of_name = (
            f"only the processes that were called {name!r} at the start were recorded: {why}",
        )

    def _write_existing(self) -> None:
        """Write the kernel's mappings, and the processes and mappings from before the recording."""
        encode, write = self._encoder.encode, self._writer.write
        kallsyms = synthesized_records.kallsyms()
        for record in synthesized_records.kernel_mappings(kallsyms):
            self._build_ids.add(record)
            write(encode(record))
        for program in synthesized_records.programs(kallsyms):
            write(encode(program))
        if self._options.all_cgroups:
            root = cgroups.root()
            for cgroup in synthesized_records.cgroups(root) if root else ():
                write(encode(cgroup))
        pids = perf_targets.existing_processes(self._options, self._followed_pid)
        for about in synthesized_records.processes(pids, data=self._options.needs_data_mappings):
            if isinstance(about, Mmap2):
                self._build_ids.add(about)
            write(encode(about))

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Record until the duration is over, one of `ends` is readable, or all targets ended.

        Returns:
            True: it is over. False: `at_most_s` have passed.
        """
        if not self._watched:
            return True
        duration_s = self._options.duration_s
        is_over = wait.until(
            None if duration_s is None else self._started + duration_s,
            ends,
            pause=None if at_most_s is None else time.monotonic() + at_most_s,
            sources={self._epoll.fileno()},
            drain=self._drain_watched,
            every_s=lambda: _ROUND_S,
        )
        return is_over or not self._watched

    def _drain_watched(self) -> bool:
        """Drain the rings; return True if all tasks and CPUs are gone."""
        for fd, happened in self._epoll.poll(0):
            if happened & (select.EPOLLHUP | select.EPOLLERR):
                self._epoll.unregister(fd)
                self._watched.discard(fd)
        self._drain()
        return not self._watched

    def _drain(self) -> None:
        """Copy the records of all rings once.

        The kernel gets a ring's space back before the data is processed.
        """
        write = self._writer.write
        for ring in self._rings.values():
            data = ring.consume()
            if self._filters.need_sieve:
                data = self._filters.sieve(data)
            if data:
                write(self._take_in_samples(data))
        for ring in self._bands.values():
            data = ring.consume()
            if data:
                write(self._take_in(data))
        self._writer.end_round()

    def _take_in_samples(self, data: bytes) -> bytes:
        """Count records by type. Returns the bytes up to a record whose size makes no sense."""
        if self._own_records is not None:
            self._own_records.take_in(data)
        try:
            self._types += count_types(data)
        except FormatError as error:
            self._filters.skip(error)
            data = b"".join([data[start - 8 : end] for *_, start, end in frames(data, 0, bool)])
            self._types += count_types(data)
        return data

    def _take_in(self, data: bytes) -> bytes:
        """Note which build ids the file needs. Returns the records that can be read."""
        decode = self._side_band[0].format.decode
        kept, before = [], self._unreadable
        for type_, misc, start, end in frames(data, 0, self._skip):
            try:
                record = decode(type_, misc, data, start, end)
            except FormatError as error:
                self._skip(error)
                continue
            kept.append((start, end))
            if isinstance(record, Mmap | Mmap2):
                self._build_ids.add(record)
            elif isinstance(record, Fork):
                self._tasks += 1
        if self._unreadable == before:
            return data
        return b"".join([data[start - 8 : end] for start, end in kept])

    def _skip(self, _: FormatError) -> None:
        self._unreadable += 1

    def live(self) -> LiveFile:
        """Return a reader that shows the stacks of the recording while it runs."""
        from purebpf.tools.record.live import LiveFile

        return LiveFile(self._file.fileno(), self._options.output)

    def stop(self) -> Recorded:
        """End the recording, complete the file and close everything else.

        Raises:
            KernelError: the file could not be written.
        """
        with self._owned:
            for sampled in self._sampled:
                for event in sampled.opened:
                    event.disable()
            self._drain()
            recorded = self._summarize()
            self._write_losses()
            self._writer.finish({Feature.BUILD_ID: self._build_ids.pack()})
            size = os.stat(self._file.fileno()).st_size
            self._file.commit()
        return recorded._replace(size=size)

    def _summarize(self) -> Recorded:
        due: list[int | None] = []
        lost = 0
        for sampled in self._sampled:
            readings = [event.read() for event in sampled.opened]
            due.append(samples_due(sampled.opened[0].attr, [reading.value for reading in readings]))
            lost += sum(reading.lost or 0 for reading in readings)
        lost += self._filters.unreadable
        due_times = [number for number in due if number is not None]
        total = sum(due_times) if len(due_times) == len(due) else None
        begun = self._tasks * sum(len(opening.opened) for opening in self._sampled)
        own, records = self._own, self._own_records
        return Recorded(
            path=self._options.output,
            size=0,
            samples=self._types[kind.PERF_RECORD_SAMPLE] - (records.count if records else 0),
            due=total,
            tolerance=begun + (total or 0) // 100,
            lost=lost,
            side_band_lost=sum(event.read().lost or 0 for event in self._side_band)
            + self._unreadable,
            throttled=self._types[kind.PERF_RECORD_THROTTLE],
            rejected=self._filters.count_rejected(),
            undecided=self._filters.undecided,
            outside=self._filters.count_outside(),
            children_missed=self._tree.missed if self._tree else 0,
            program=own.name if own else "",
            program_dropped=own.count_dropped() if own else 0,
            records=records.count if records else None,
            records_lost=records.count_lost() if records else 0,
            notes=(*self._note_of_name, *self._notes(), *self._filters.notes()),
        )

    def _notes(self) -> Iterable[str]:
        if self._options.copy_bytes:
            yield (
                f"{self._options.output} holds copies of the stacks of what was recorded: "
                "there may be passwords and keys in them. Only its owner can read it"
            )
        inherited = self._options.follows_command and self._tree is None
        if inherited and self._tasks > self._types[kind.PERF_RECORD_SAMPLE]:
            yield (
                f"{self._tasks} processes and threads, and fewer samples: what ended before its "
                "first sampling period is missing. Raise -F, or use root and a kernel with BTF"
            )
        inherits = PERF_EVENT_ATTR.unpack(self._sampled[0].opened[0].attr)
        if self._options.pids and not self._options.tree and not inherits["inherit_thread"]:
            yield CHILDREN_COUNT
        for sampled in self._sampled:
            event = sampled.opened[0].event
            if event.fell_back:
                yield f"event: {event.name} (this machine has no PMU event {event.asked})"
            if sampled.user_only:
                level = proc.sysctl("kernel.perf_event_paranoid")
                yield (
                    f"event: {event.name}: user space only, since kernel.perf_event_paranoid is "
                    f"{level}"
                )

    def _write_losses(self) -> None:
        """Write the number of records that found no room, as perf(1) does at the end of a file."""
        for sampled in self._sampled:
            for event in sampled.opened:
                reading = event.read()
                if reading.lost:
                    record = LostSamples(reading.lost, id=reading.id)
                    self._writer.write(self._encoder.encode(record))
        if self._own is not None and (count := self._own.count_dropped()):
            first = self._sampled[0].opened[0]
            by_program = LostSamples(count, id=perf.event_id(first.fileno()), by_bpf=True)
            self._writer.write(self._encoder.encode(by_program))
        for dropped in self._filters.losses():
            self._writer.write(self._encoder.encode(dropped))

    def _features(self) -> dict[Feature, bytes]:
        """Return the features of the file that are certain at the start."""
        contents = perf_data_headers.features([sys.executable, *sys.argv])
        contents[Feature.CLOCKID] = pack_numbers(1)
        types = self._own_records and self._own_records.pack_types()
        if types:
            contents[Feature.BPF_BTF] = types
        tracepoints = [
            ":".join(sampled.choice.event.name.split(":")[:2])
            for sampled in self._sampled
            if sampled.choice.is_tracepoint
        ]
        if tracepoints:
            contents[Feature.TRACING_DATA] = perf_data_headers.tracing_data(tracepoints)
        return contents

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._owned.close()
