"""HotSpot's packed numbers, UNSIGNED5 (src/hotspot/share/utilities/unsigned5.hpp).

The low 192 codes of a byte end a number; the other 64 say that bytes follow, with 6 bits each. From
JDK 20 on, no byte is 0: each is larger by 1.
"""

from __future__ import annotations

__all__ = ["read_unsigned5", "signed"]

_FIRST_HIGH = 192
_BITS = 6
_MOST_BYTES = 5
_WORD = 0xFFFFFFFF


def read_unsigned5(data: bytes, at: int, least_byte: int) -> tuple[int, int]:
    """Read a number of 32 bits.

    Args:
        data: the bytes.
        at: where it begins.
        least_byte: 1 from JDK 20 on, 0 before.

    Returns:
        The number, and where the next one begins.

    Raises:
        ValueError: the data ends inside of it.
    """
    value = 0
    for number in range(_MOST_BYTES):
        if at >= len(data):
            raise ValueError("UNSIGNED5: the data ends inside of a number")
        byte = data[at]
        at += 1
        value += byte - least_byte << _BITS * number
        if byte < _FIRST_HIGH:
            break
    return value & _WORD, at


def signed(value: int) -> int:
    """Decode the sign, which the lowest bit has."""
    return value >> 1 ^ -(value & 1)
