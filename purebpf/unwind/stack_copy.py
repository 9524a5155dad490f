"""A copy of the top of a stack, as the kernel appends it to a sample (PERF_SAMPLE_STACK_USER)."""

from __future__ import annotations

import struct
import sys

__all__ = ["OutsideError", "StackCopy"]

_WORDS = {4: struct.Struct("<I"), 8: struct.Struct("<Q")}


class OutsideError(Exception):
    """An address that the copy does not have."""


class StackCopy:
    """`data` is the memory from `address`, the stack pointer, upwards; `size` is that of a word."""

    __slots__ = ("_layout", "_size", "_words", "address", "data")

    def __init__(self, address: int, data: bytes, size: int = 8) -> None:
        self.address = address
        self.data = data
        self._size = size
        self._layout = _WORDS[size]
        self._words: memoryview[int] | tuple[()] = ()
        if sys.byteorder == "little":  # where an index takes a third of the time of a struct
            whole = memoryview(data)[: len(data) & -size]
            self._words = whole.cast("Q") if size == 8 else whole.cast("I")

    def word(self, address: int) -> int:
        """The word at an address.

        Raises:
            OutsideError: the copy does not have them all.
        """
        at, size = address - self.address, self._size
        if at < 0 or at + size > len(self.data):
            raise OutsideError
        if not at & size - 1 and self._words:
            return self._words[at // size]
        return int(self._layout.unpack_from(self.data, at)[0])

    def read(self, address: int, size: int) -> int:
        """The unsigned number in `size` bytes at an address.

        Raises:
            OutsideError: the copy does not have them all.
        """
        at = address - self.address
        if at < 0 or at + size > len(self.data):
            raise OutsideError
        return int.from_bytes(self.data[at : at + size], "little")
