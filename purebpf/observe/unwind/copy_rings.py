"""`CopyRings`: the rings that copied stacks arrive in, ready before the first sample.

It does not interpret the content, so that opening it imports little.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.closable import Closing
from purebpf.loader.perf.largest_rings import map_largest_rings
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.syscall import bpf

if TYPE_CHECKING:
    from purebpf.errors import FormatError
    from purebpf.loader.rings.record_types import RecordMap

__all__ = ["LARGEST_COPY", "SAMPLE_TYPE", "CopyRings"]

LARGEST_COPY = 65528
"""Bytes: what a record can hold (perf_event_open(2), sample_stack_user)."""

SAMPLE_TYPE = bit.PERF_SAMPLE_RAW | bit.PERF_SAMPLE_STACK_USER

_FEWEST_PAGES = 32


class CopyRings(Closing):
    """A ring for each online CPU, in a map of a program.

    Args:
        source: the map; it must stay open.
        stack_bytes: how much of a stack to copy, a multiple of 8 up to `LARGEST_COPY`.
        pages: data pages of each ring, a power of two: 256 hold about 60 full copies of 16 KiB.
            Where the user may not lock so much memory, half as many, and so on.

    Attributes:
        lost_records: lost copies, as records in the rings say.
        unreadable: records that could not be read.

    Raises:
        KernelError: the kernel refused an event, a ring, or an element of the map.
        ValueError: `stack_bytes` is not possible, or `pages` is not a power of two.
    """

    def __init__(self, source: RecordMap, *, stack_bytes: int = 16384, pages: int = 256) -> None:
        if not 0 < stack_bytes <= LARGEST_COPY or stack_bytes % 8:
            raise ValueError(
                f"cannot copy {stack_bytes} bytes of a stack: expected a multiple of 8 up to "
                f"{LARGEST_COPY}"
            )
        self.lost_records = self.unreadable = 0
        with ExitStack() as undo:
            self._events = undo.enter_context(
                PerfEvents.open(
                    "bpf-output",
                    sample_type=SAMPLE_TYPE,
                    sample_stack_user=stack_bytes,
                    sample_period=1,
                    wakeup_events=1,
                )
            )
            self._rings = map_largest_rings(self._events, pages, _FEWEST_PAGES)
            for event in self._events:
                key, value = event.cpu.to_bytes(4, "little"), event.fileno().to_bytes(4, "little")
                bpf.map_update_elem(source.fileno(), key, value)
            undo.pop_all()

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when a copy has come."""
        return tuple([event.fileno() for event in self._events])

    @property
    def lost(self) -> int:
        """Copies that found no room (exact from Linux 6.0 on) or that could not be read."""
        counted = self._events.lost
        return (self.lost_records if counted is None else counted) + self.unreadable

    def skip(self, _: FormatError) -> None:
        """Count a record that could not be read."""
        self.unreadable += 1

    def consume(self) -> Iterator[bytes]:
        """The records that the rings hold now, CPU after CPU."""
        for ring in self._rings:
            if len(ring):
                yield ring.consume()

    def close(self) -> None:
        """Unmap the rings and close the events; again is harmless."""
        self._events.close()
