"""The starts of symbols, sorted: one number a symbol, its address above its entry's number.

    key = address << ENTRY_BITS | entry

To sort a million tuples, or by a key function, takes a second. So the bytes of the keys are put
together in whole columns, read as doubles, and sorted as doubles: positive doubles sort as their
bits do, and Python sorts doubles fastest among all 64-bit values. Addresses below 128 GiB fit,
which programs and libraries have; others make it a list of larger numbers, and slower.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import compress

__all__ = ["ENTRY_BITS", "ENTRY_MASK", "StartKeys"]

ENTRY_BITS = 24
ENTRY_MASK = (1 << ENTRY_BITS) - 1
"""The number of an entry in a key, and how many entries there can be, less one."""

_NEAR = 1 << 37
_EXPONENT = 0x40
"""The highest byte while keys are doubles: with it none is denormal, infinite or no number."""

_WITH_EXPONENT = bytes(byte | _EXPONENT for byte in range(256))
_WITHOUT_EXPONENT = bytes(byte & ~_EXPONENT for byte in range(256))

_LOW_FIRST = (0, 1, 2, 3, 4, 5, 6, 7)
_BYTES_OF_8 = _LOW_FIRST if sys.byteorder == "little" else _LOW_FIRST[::-1]
_BYTES_OF_4 = _LOW_FIRST[:4] if sys.byteorder == "little" else _LOW_FIRST[3::-1]


class StartKeys:
    """Keys of symbols, which are sorted at their first use."""

    def __init__(self) -> None:
        self._near: list[float] = []
        self._far: list[int] = []

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._near) + len(self._far)

    def add(self, entry: int, starts: array[int], chosen: bytes | bytearray) -> None:
        """Symbols with entries that follow each other.

        Args:
            entry: the number of the first; none of them may be above `ENTRY_MASK`.
            starts: their addresses, of type "Q".
            chosen: for each, whether it counts.
        """
        if max(starts, default=0) >= _NEAR:
            far = [at for at in compress(range(len(starts)), chosen) if starts[at] >= _NEAR]
            self._far.extend(starts[at] << ENTRY_BITS | entry + at for at in far)
            chosen = bytearray(chosen)
            for at in far:
                chosen[at] = False
        self._near.extend(compress(_doubles(entry, starts), chosen))

    def take_all(self) -> Sequence[int]:
        """Return all keys, ascending, and empty this object. The result is an array, unless
        there are far addresses.
        """
        near, self._near = self._near, []
        far, self._far = self._far, []
        near.sort()
        data = bytearray(array("d", near).tobytes())
        del near
        data[_BYTES_OF_8[7] :: 8] = data[_BYTES_OF_8[7] :: 8].translate(_WITHOUT_EXPONENT)
        keys = array("Q", bytes(data))
        return sorted([*keys, *far]) if far else keys


def _doubles(entry: int, starts: array[int]) -> array[float]:
    """The keys of these symbols, read as doubles."""
    count = len(starts)
    numbers = array("I", range(entry, entry + count)).tobytes()
    addresses = starts.tobytes()
    data = bytearray(8 * count)
    for byte in range(3):
        data[_BYTES_OF_8[byte] :: 8] = numbers[_BYTES_OF_4[byte] :: 4]
    for byte in range(4):
        data[_BYTES_OF_8[3 + byte] :: 8] = addresses[_BYTES_OF_8[byte] :: 8]
    high = addresses[_BYTES_OF_8[4] :: 8]
    data[_BYTES_OF_8[7] :: 8] = high.translate(_WITH_EXPONENT)
    doubles = array("d")
    doubles.frombytes(data)
    return doubles
