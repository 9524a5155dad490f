"""malloc_trim(3): give what the C library keeps of freed memory back to the kernel."""

from __future__ import annotations

import ctypes

__all__ = ["trim_heap"]


def trim_heap() -> None:
    """Give back free pages of the heap; nothing happens where the C library cannot (musl)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
