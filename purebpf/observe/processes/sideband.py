"""`SideBand`: which processes start, exec, map code and end, while something else is measured."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Container, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.closable import Closing
from purebpf.loader.perf.largest_rings import map_largest_rings
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.wire.perf_ring import HEADER, Buffer, frames
from purebpf.wire.process_runs import Happened, sort_out

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_ring import PerfRing
    from purebpf.symbols.address_spaces import MappedCode
    from purebpf.symbols.proc_maps import MappedFile
    from purebpf.wire.perf_format import RecordFormat
    from purebpf.wire.perf_records import Comm, Exit, Fork

__all__ = ["Change", "SideBand"]

Change: TypeAlias = "MappedCode | Comm | Fork | Exit"
"""What happened to a process; `time` is CLOCK_MONOTONIC in ns, as bpf_ktime_get_ns."""

_MMAP2 = int(kind.PERF_RECORD_MMAP2)
_BY_TIME = attrgetter("time")
_TIME = struct.Struct("=Q")
_TIME_AT = 16
"""Before the end of a record: the CPU follows."""
_MAP = struct.Struct("=I4xQQQ")
"""The head of struct perf_record_mmap2; its file and what may be done with it follow."""
_LAST = (1 << 64) - 1
_FEWEST_PAGES, _MOST_PAGES, _ALL_PAGES = 16, 64, 2048
"""Of a ring, and of all. A process that starts a program fills 1 KiB; a tool that has just started
may not get to read for a second."""
_MOST_FILES = 4096


class SideBand(Closing):
    """Follows every process of the machine, through a dummy event on each online CPU.

    It sees from when it is opened: read /proc for what was there before, afterwards, so that
    nothing falls between. Only mappings of code are reported. Needs CAP_PERFMON, or
    perf_event_paranoid below 1.
    """

    def __init__(
        self,
        *,
        pages: int = 0,
        cpus: Iterable[int] | None = None,
        pids: Container[int] | None = None,
        threads: bool = True,
        is_patient: bool = False,
    ) -> None:
        """Open the events and map their rings.

        Args:
            pages: data pages of each ring, a power of two; 0: 64, beyond 32 CPUs fewer, down
                to 16, and as few where the user may not lock so much memory.
            cpus: those to follow; None: all that are online.
            pids: pass over what other processes do, at a twentieth of the cost; None: all count.
            threads: whether the beginning and end of those counts that are not a process's first.
            is_patient: wait for three times as much before it is to be drained: what is measured
                tells of most processes itself. As long as the rings have room for more than that.

        Raises:
            KernelError: the kernel refused an event or a ring; nothing stays open.
            ValueError: `pages` is not a power of two.
        """
        self._pids = pids
        self._threads = threads
        self._files: dict[bytes, MappedFile | None] = {}
        self._lost_records = 0
        self._lost_at_close: int | None = None
        wanted = min(pages or _FEWEST_PAGES, _FEWEST_PAGES) * mmap.PAGESIZE // 2
        self._open(3 * wanted if is_patient else wanted, cpus, pages)
        if is_patient and min(ring.size for ring in self._rings) < 6 * wanted:
            self._events.close()
            self._open(wanted, cpus, pages)
        self._held = [b""] * len(self._rings)

    def _open(self, wakeup_bytes: int, cpus: Iterable[int] | None, pages: int) -> None:
        self._events = PerfEvents.open(
            "dummy",
            cpus=cpus,
            sample_type=bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME | bit.PERF_SAMPLE_CPU,
            sample_id_all=1,
            mmap=1,
            mmap2=1,
            comm=1,
            comm_exec=1,
            task=1,
            use_clockid=1,
            clockid=time.CLOCK_MONOTONIC,
            watermark=1,
            wakeup_watermark=wakeup_bytes,
        )
        try:
            self._rings = self._map_rings(pages)
        except BaseException:
            self._events.close()
            raise

    def _map_rings(self, pages: int) -> list[PerfRing]:
        if pages:
            return map_largest_rings(self._events, pages, pages)
        fair = max(_FEWEST_PAGES, min(_MOST_PAGES, _ALL_PAGES // len(self.fds)))
        return map_largest_rings(self._events, 1 << fair.bit_length() - 1, _FEWEST_PAGES)

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors that poll as readable when a ring has 32 or 96 KiB, once: then drain.

        Drain after adding them to an epoll set, too: adding may use up the report.
        """
        return tuple([event.fileno() for event in self._events])

    @property
    def lost(self) -> int:
        """Records that found no room in their ring, exactly from Linux 6.0 on.

        Before (commit 119a784c8127, "perf/core: Add a new read format to get a number of lost
        samples"), the kernel says so only when a later record finds room.
        """
        if self._lost_at_close is not None:
            return self._lost_at_close
        counted = self._events.lost
        return self._lost_records if counted is None else counted

    def drain(self) -> list[Change]:
        """What happened since the last time and before this call, in the order of time.

        What happens while the rings are read is kept for the next call, so that the order holds
        across calls too. (A record is dated some ns before it is in its ring: one that a CPU was
        writing at the time of this call can be older than the last one of the list before it.)

        Raises:
            FormatError: a ring makes no sense.
            ValueError: closed.
        """
        return self.decode(piece for runs in self.sort_out().runs.values() for piece in runs)

    def sort_out(self) -> Happened:
        """The same by process, for `decode`: a tenth of the work. Raises as `drain`."""
        if self._lost_at_close is not None:
            raise ValueError("the sideband is closed")
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        heads = [ring.head for ring in self._rings]  # now: what is later has to be searched for
        happened = Happened.nothing()
        for number, (ring, head) in enumerate(zip(self._rings, heads, strict=True)):
            held = self._held[number]
            try:
                with memoryview(ring.peek(head)) as fresh:  # to copy takes as long as to sort
                    data = held + fresh if held else fresh
                    cut = _cut(data, now)
                    self._held[number] = bytes(data[cut:])
                    sort_out(data, happened, cut, threads=self._threads)
            finally:
                ring.give_back(head)
        self._lost_records += sum(happened.lost)
        return happened if self._pids is None else happened.of(self._pids)

    def decode(self, pieces: Iterable[bytes]) -> list[Change]:
        """What runs of `sort_out` say, in the order of time.

        Raises:
            FormatError: a record breaks its format.
        """
        records: list[Change] = []
        form = next(iter(self._events)).format
        for piece in pieces:
            self._decode(piece, form, records)
        records.sort(key=_BY_TIME)
        return records

    def _decode(self, data: bytes, form: RecordFormat, into: list[Change]) -> None:
        """Decode records; most say what was mapped, and most of those name the same few files."""
        from purebpf.symbols.address_spaces import MappedCode, code_of
        from purebpf.wire.perf_records import Comm, Exit, Fork, Mmap2

        files, size = self._files, _MAP.size
        for type_, misc, start, end in frames(data):
            if type_ != _MMAP2:
                record = form.decode(type_, misc, data, start, end)
                if isinstance(record, Comm | Fork | Exit):
                    into.append(record)
                continue
            words = data[start + size : form.body_end(data, start, end, size)]
            file = files.get(words)
            if file is None:
                if words in files:  # data
                    continue
                if len(files) >= _MOST_FILES:
                    files.clear()
                record = form.decode(type_, misc, data, start, end)
                mapping = code_of(record) if isinstance(record, Mmap2) else None
                files[words] = file = mapping.file if mapping else None
                if file is None:
                    continue
            pid, address, length, offset = _MAP.unpack_from(data, start)
            (at_ns,) = _TIME.unpack_from(data, end - _TIME_AT)
            into.append(MappedCode(pid, address, min(address + length, _LAST), offset, file, at_ns))

    def close(self) -> None:
        """Unmap and close everything; again is harmless."""
        if self._lost_at_close is None:
            self._lost_at_close = self.lost
        self._events.close()


def _cut(data: Buffer, now: int) -> int:
    """Where the records of a ring begin that are later than a time."""
    if not data or _time_before(data, len(data)) <= now:
        return len(data)
    return next(
        (start - HEADER.size for *_, start, end in frames(data) if _time_before(data, end) > now),
        len(data),
    )


def _time_before(data: Buffer, end: int) -> int:
    """The time of the record that ends there."""
    (at_ns,) = _TIME.unpack_from(data, end - _TIME_AT)
    return int(at_ns)
