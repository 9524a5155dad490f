"""Memory that the kernel reads and writes, at a separate address."""

from __future__ import annotations

import ctypes
from functools import lru_cache

__all__ = ["Buffer", "array_type"]


class Buffer:
    """Memory at a fixed address, zeroed or filled with `data`.

    Attributes:
        data: the bytes, as a bytearray that cannot be resized.
        array: the same bytes, as ctypes passes them to a system call.
        address: where they are.
    """

    __slots__ = ("address", "array", "data")

    def __init__(self, data: int | bytes | bytearray) -> None:
        self.data = bytearray(data)
        # While a ctypes object borrows the bytearray, Python refuses to resize (and so move) it.
        self.array = array_type(len(self.data)).from_buffer(self.data)
        self.address = ctypes.addressof(self.array)


@lru_cache(64)
def array_type(size: int) -> type[ctypes.Array[ctypes.c_char]]:
    """`char[size]`; kept: ctypes makes each type anew when its last array is gone, in a cycle."""
    return ctypes.c_char * size
