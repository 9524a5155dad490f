"""`map_largest_rings`: rings as large as the user may have."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from purebpf.errors import KernelError

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_event import PerfEvent
    from purebpf.loader.perf.perf_ring import PerfRing

__all__ = ["map_largest_rings"]


def map_largest_rings(events: Iterable[PerfEvent], pages: int, fewest: int) -> list[PerfRing]:
    """The ring of each event; with fewer pages where kernel.perf_event_mlock_kb asks for it.

    Args:
        events: they have no rings yet.
        pages: data pages, a power of two: half as many, and so on, are tried if that is too much.
        fewest: with these it is an error.

    Raises:
        KernelError, ValueError: as `PerfEvent.map_ring`.
    """
    rings = []
    for event in events:
        rings.append(_map_ring(event, pages, fewest))
        pages = rings[-1].size // mmap.PAGESIZE
    return rings


def _map_ring(event: PerfEvent, pages: int, fewest: int) -> PerfRing:
    while True:
        try:
            return event.map_ring(pages)
        except KernelError as error:
            if error.errno != errno.EPERM or pages <= fewest:
                raise
        pages //= 2
