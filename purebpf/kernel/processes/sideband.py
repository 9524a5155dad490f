"""`SideBand`: which processes start, exec, map code and end, while something else is measured."""

from __future__ import annotations

import mmap
import struct
import time
from bisect import bisect_right
from collections.abc import Container, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.closable import Closing
from purebpf.kernel.perf.perf_events import PerfEvents
from purebpf.wire.perf_ring import frames

if TYPE_CHECKING:
    from purebpf.symbols.address_spaces import MappedCode
    from purebpf.symbols.proc_maps import MappedFile
    from purebpf.wire.perf_format import RecordFormat
    from purebpf.wire.perf_records import Comm, Exit, Fork

__all__ = ["Change", "SideBand"]

Change: TypeAlias = "MappedCode | Comm | Fork | Exit"
"""What happened to a process; `time` is CLOCK_MONOTONIC in ns, as bpf_ktime_get_ns."""

_ACTIONS = frozenset(
    (
        kind.PERF_RECORD_MMAP2,
        kind.PERF_RECORD_COMM,
        kind.PERF_RECORD_FORK,
        kind.PERF_RECORD_EXIT,
    )
)
"""What a process did: its number comes first."""
_MMAP2, _FORK, _EXIT = map(
    int, (kind.PERF_RECORD_MMAP2, kind.PERF_RECORD_FORK, kind.PERF_RECORD_EXIT)
)
_BY_TIME = attrgetter("time")
_PID = struct.Struct("=I")
_TASK = struct.Struct("=IIII")
"""PERF_RECORD_FORK and PERF_RECORD_EXIT: pid, ppid, tid, ptid; more follows."""
_TIME = struct.Struct("=Q")
_TIME_AT = 16
"""Before the end of a record: the CPU follows."""
_MAP = struct.Struct("=I4xQQQ")
"""The head of struct perf_record_mmap2; its file and what may be done with it follow."""
_LAST = (1 << 64) - 1
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
        pages: int = 16,
        cpus: Iterable[int] | None = None,
        pids: Container[int] | None = None,
        threads: bool = True,
    ) -> None:
        """Open the events and map their rings.

        Args:
            pages: data pages of each ring, a power of two.
            cpus: those to follow; None: all that are online.
            pids: pass over what other processes do, at a twentieth of the cost; None: all count.
            threads: whether the beginning and end of those counts that are not a process's first.

        Raises:
            KernelError: the kernel refused an event or a ring; nothing stays open.
            ValueError: `pages` is not a power of two.
        """
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
            wakeup_watermark=pages * mmap.PAGESIZE // 2,
        )
        self._pids = pids
        self._threads = threads
        self._held: list[Change] = []
        self._files: dict[bytes, MappedFile | None] = {}
        self._lost_records = 0
        self._lost_at_close: int | None = None
        try:
            self._rings = [event.map_ring(pages) for event in self._events]
        except BaseException:
            self._events.close()
            raise

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors that poll as readable when a ring is half full, once: then drain.

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
        if self._lost_at_close is not None:
            raise ValueError("the sideband is closed")
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        records = self._held
        for event, ring in zip(self._events, self._rings, strict=True):
            self._decode(ring.consume(), event.format, records)
        records.sort(key=_BY_TIME)
        cut = bisect_right(records, now, key=_BY_TIME)
        self._held = records[cut:]
        return records[:cut]

    def _decode(self, data: bytes, form: RecordFormat, into: list[Change]) -> None:
        """Decode records; most say what was mapped, and most of those name the same few files."""
        from purebpf.symbols.address_spaces import MappedCode, code_of
        from purebpf.wire.perf_records import Comm, Exit, Fork, Lost, Mmap2

        pids, files, size = self._pids, self._files, _MAP.size
        for type_, misc, start, end in frames(data):
            if pids is not None and type_ in _ACTIONS and start + _PID.size <= end:
                (pid,) = _PID.unpack_from(data, start)
                if pid not in pids:
                    continue
            if type_ != _MMAP2:
                if not (self._threads or end - start < _TASK.size) and (
                    (type_ == _FORK and _is_thread_start(data, start))
                    or (type_ == _EXIT and _is_thread_end(data, start))
                ):
                    continue
                record = form.decode(type_, misc, data, start, end)
                if isinstance(record, Comm | Fork | Exit):
                    into.append(record)
                elif isinstance(record, Lost):
                    self._lost_records += record.lost
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


def _is_thread_start(data: bytes, start: int) -> bool:
    """Whether a FORK record is of a thread, not of a process."""
    pid, parent, _, _ = _TASK.unpack_from(data, start)
    return bool(pid == parent)


def _is_thread_end(data: bytes, start: int) -> bool:
    """Whether an EXIT record is of a thread other than the first of its process."""
    pid, _, tid, _ = _TASK.unpack_from(data, start)
    return bool(pid != tid)
