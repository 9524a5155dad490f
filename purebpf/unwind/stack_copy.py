"""A copy of the top of a stack, as the kernel appends it to a sample (PERF_SAMPLE_STACK_USER)."""

from __future__ import annotations

import struct
import sys

__all__ = ["OutsideError", "StackCopy"]

_WORD = struct.Struct("<Q")


class OutsideError(Exception):
    """An address that the copy does not have."""


class StackCopy:
    """`data` is the memory from `address`, the stack pointer, upwards."""

    __slots__ = ("_words", "address", "data")

    def __init__(self, address: int, data: bytes) -> None:
        self.address = address
        self.data = data
        self._words: memoryview[int] | tuple[()] = ()
        if sys.byteorder == "little":  # where an index takes a third of the time of a struct
            self._words = memoryview(data)[: len(data) & -8].cast("Q")

    def word(self, address: int) -> int:
        """The 8 bytes at an address.

        Raises:
            OutsideError: the copy does not have them all.
        """
        at = address - self.address
        if at < 0 or at + 8 > len(self.data):
            raise OutsideError
        if not at & 7 and self._words:
            return self._words[at >> 3]
        return int(_WORD.unpack_from(self.data, at)[0])

    def read(self, address: int, size: int) -> int:
        """The unsigned number in `size` bytes at an address.

        Raises:
            OutsideError: the copy does not have them all.
        """
        at = address - self.address
        if at < 0 or at + size > len(self.data):
            raise OutsideError
        return int.from_bytes(self.data[at : at + size], "little")
