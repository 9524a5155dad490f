"""A hash of a table of lines, as bpf_src/include/python_text.h has it of the same bytes."""

from __future__ import annotations

import struct
from functools import lru_cache

__all__ = ["hash_table"]

_PART, _PARTS = 1024, 8
"""TABLE_BYTES and TABLE_PARTS."""
_FACTOR, _MASK = 0xFF51AFD7ED558CCD, (1 << 64) - 1
_WORD = 8


@lru_cache(8192)
def hash_table(table: bytes) -> int:
    """Return the hash of all its bytes, or of parts of a long table.

    Each process has code objects of its own, with the same tables as others that run the program.
    """
    size = len(table)
    step = _PART if size <= _PARTS * _PART else (size - _PART) // (_PARTS - 1)
    digest = _mix(0, size)
    for start in range(0, size, step)[:_PARTS]:
        part = table[start : start + _PART]
        padded = part + bytes(-len(part) % _WORD)
        for (word,) in struct.iter_unpack("<Q", padded):
            digest = _mix(digest, word)
    return digest


def _mix(digest: int, word: int) -> int:
    digest = (digest ^ word) * _FACTOR & _MASK
    return digest ^ digest >> 32
