"""`map_largest_ring`: a ring as large as the user may have."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from purebpf.errors import KernelError

if TYPE_CHECKING:
    from purebpf.kernel.perf.perf_event import PerfEvent
    from purebpf.kernel.perf.perf_ring import PerfRing

__all__ = ["map_largest_ring"]


def map_largest_ring(event: PerfEvent, pages: int, fewest: int) -> PerfRing:
    """The ring of an event; with fewer pages where kernel.perf_event_mlock_kb asks for it.

    Args:
        event: it has no ring yet.
        pages: data pages, a power of two: half as many, and so on, are tried if that is too much.
        fewest: with these it is an error.

    Raises:
        KernelError, ValueError: as `PerfEvent.map_ring`.
    """
    while True:
        try:
            return event.map_ring(pages)
        except KernelError as error:
            if error.errno != errno.EPERM or pages <= fewest:
                raise
        pages //= 2
