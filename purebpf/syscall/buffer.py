"""Memory that the kernel reads and writes, and its addresses.

An address is a plain integer and keeps nothing alive: the caller holds the object until the
system call has returned.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

__all__ = ["Buffer", "address_of"]


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
        self.array = _array_type(len(self.data)).from_buffer(self.data)
        self.address = ctypes.addressof(self.array)


@lru_cache(64)
def _array_type(size: int) -> type[ctypes.Array[ctypes.c_char]]:
    """Kept: ctypes makes each type anew when the last array of it is gone, and leaves a cycle."""
    return ctypes.c_char * size


def address_of(data: bytes | bytearray | None) -> int:
    """The address of the first byte of `data`; 0 for None and for nothing.

    The kernel may write only to a bytearray. The bytearray must not be resized while the
    address is in use.
    """
    if not data:
        return 0
    if isinstance(data, bytearray):
        return ctypes.addressof(ctypes.c_char.from_buffer(data))
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
