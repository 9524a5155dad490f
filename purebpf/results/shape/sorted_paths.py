"""Paths of functions as bytes that sort: side by side, they are a tree in depth-first order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from sys import byteorder

__all__ = ["WORD", "numbers", "shared", "sortable"]

WORD = 4
"""Bytes of a number in a path."""


def sortable(path: Iterable[int]) -> bytes:
    """The numbers, big-endian: as bytes they sort as the numbers do."""
    words = array("I", path)
    if byteorder == "little":
        words.byteswap()
    return words.tobytes()


def numbers(path: bytes) -> array[int]:
    """Return the numbers given to `sortable`."""
    words = array("I", path)
    if byteorder == "little":
        words.byteswap()
    return words


def shared(left: bytes, right: bytes) -> int:
    """Return how many numbers two paths have in common from the root."""
    size = min(len(left), len(right))
    different = int.from_bytes(left[:size], "big") ^ int.from_bytes(right[:size], "big")
    return (8 * size - different.bit_length()) // (8 * WORD)
