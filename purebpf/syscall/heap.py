"""The C library's heap: how it takes memory, and how it gives it back to the kernel."""

from __future__ import annotations

import ctypes

__all__ = ["map_large_blocks", "trim_heap"]

_M_MMAP_THRESHOLD = -3
"""malloc.h"""
_LARGE = 128 << 10


def map_large_blocks() -> None:
    """Map each block of 128 KiB and more on its own; nothing happens in musl, which does so anyway.

    glibc begins so, but raises the limit to the largest block that was ever freed (mallopt(3)):
    from the first large symbol table on, all others leave holes in the heap.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_M_MMAP_THRESHOLD, _LARGE)


def trim_heap() -> None:
    """Give back free pages of the heap; nothing happens where the C library cannot (musl)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
