"""`SideBand`: which processes start, exec, map code and end, while something else is measured."""

from __future__ import annotations

import mmap
import time
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.errors import FormatError
from purebpf.loader.perf.largest_rings import map_largest_rings
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.processes.change_decoder import (
    SAMPLE_TYPE,
    TIME,
    TIME_AT,
    Change,
    ChangeDecoder,
)
from purebpf.syscall import host_clock
from purebpf.wire.perf_ring import HEADER, Buffer, frames
from purebpf.wire.process_runs import Happened, sort_out

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_ring import PerfRing

__all__ = ["Change", "SideBand"]

_FEWEST_PAGES, _MOST_PAGES, _ALL_PAGES = 16, 64, 2048
"""Of a ring, and of all. A process that starts a program fills 1 KiB; a tool that has just started
may not get to read for a second."""
_SOON_NS = 1_000_000_000
"""A record that is dated later than that is not one that was written during a call."""


class SideBand(Closing):
    """Follows every process of the machine, through a dummy event on each online CPU.

    It records from its opening on: read /proc for earlier facts afterwards, so that nothing falls
    between. Only mappings of code are reported. Needs CAP_PERFMON, or perf_event_paranoid below 1.
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
            pids: skip records of other processes, at a twentieth of the cost; None: all count.
            threads: whether the beginning and end of those counts that are not a process's first.
            is_patient: wait for three times as much before it is to be drained: the measurement
                itself names most processes. As long as the rings have room for more than that.

        Raises:
            KernelError: the kernel refused an event or a ring; nothing stays open.
            ValueError: `pages` is not a power of two.
        """
        self._pids = pids
        self._threads = threads
        self._lost_records = self._unreadable = 0
        self._decoder: ChangeDecoder | None = None
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
            sample_type=SAMPLE_TYPE,
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
        """Records that found no room in their ring, and records that could not be read.

        The first number is exact from Linux 6.0 on. Before (commit 119a784c8127, "perf/core: Add a
        new read format to get a number of lost samples"), the kernel says so only when a later
        record finds room.
        """
        if self._lost_at_close is not None:
            return self._lost_at_close
        counted = self._events.lost
        lost = self._lost_records if counted is None else counted
        return lost + self._unreadable + (self._decoder.unreadable if self._decoder else 0)

    def drain(self) -> list[Change]:
        """Return the records since the last time and before this call, in the order of time.

        Records that come while the rings are read wait for the next call, so that the order holds
        across calls. (A record is dated some ns before it is in its ring: one that a CPU was
        writing at the time of this call can be older than the last one of the list before it.)

        Raises:
            ValueError: closed.
        """
        return self.decode(piece for runs in self.sort_out().runs.values() for piece in runs)

    def sort_out(self) -> Happened:
        """The same by process, for `decode`: a tenth of the work. Raises as `drain`."""
        if self._lost_at_close is not None:
            raise ValueError("the sideband is closed")
        now = host_clock.monotonic_ns()
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
            except FormatError:  # the positions make no sense
                self._held[number] = b""
                happened.unreadable.append(1)
            finally:
                ring.give_back(head)
        self._lost_records += sum(happened.lost)
        self._unreadable += sum(happened.unreadable)
        return happened if self._pids is None else happened.of(self._pids)

    def decode(self, pieces: Iterable[bytes]) -> list[Change]:
        """Decode runs of `sort_out`, in the order of time."""
        if self._decoder is None:  # most runs begin without anything to decode
            self._decoder = ChangeDecoder(next(iter(self._events)).format)
        return self._decoder.decode(pieces)

    def close(self) -> None:
        """Unmap and close everything; again is harmless."""
        if self._lost_at_close is None:
            self._lost_at_close = self.lost
        self._events.close()


def _cut(data: Buffer, now: int) -> int:
    """Return the start of the records of a ring that are later than a time."""
    if not _is_later(data, 0, len(data), now):
        return len(data)
    for *_, start, end in frames(data, 0, bool):
        if _is_later(data, start, end, now):
            return start - HEADER.size
    return len(data)


def _is_later(data: Buffer, start: int, end: int, now: int) -> bool:
    """Return True if the record that ends there was written after a time."""
    if end - start < TIME_AT:
        return False
    (at_ns,) = TIME.unpack_from(data, end - TIME_AT)
    return bool(now < at_ns < now + _SOON_NS)
