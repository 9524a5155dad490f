"""Python frames among the addresses of a stack: words that no address is.

bpf_src/include/python_frames.h: 11 bits of tag, 1 that the evaluation loop begins there, 28 for the
number of the code object, 24 for the offset of the instruction. They come behind the native frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from purebpf.symbols.frame import Frame, Unknown

__all__ = ["CODE_SHIFT", "ENTRY", "PYTHON_FRAMES", "TAG", "PythonNames", "count_native", "is_cut"]

_TAG, _TAG_SHIFT = 0x2A5, 53
TAG = _TAG << _TAG_SHIFT
ENTRY, CODE_SHIFT = 1 << 52, 24
_CODE_MASK, _NO_FRAME = (1 << 28) - 1, (1 << 28) - 3
PYTHON_FRAMES = 96
"""Of a stack, at most."""


class PythonNames(Protocol):
    """Who knows Python frames: `purebpf.kernel.cpython.python_tables.PythonTables`."""

    def merge(
        self, tgid: int, addresses: Sequence[int], native: Sequence[Frame | Unknown]
    ) -> Sequence[Frame | Unknown]:
        """A user stack with its Python frames: `native` are the names of its native ones."""
        ...


def is_cut(word: int) -> bool:
    """Whether a word is in place of frames that could not be read."""
    return word >> CODE_SHIFT & _CODE_MASK == _NO_FRAME


def count_native(addresses: Sequence[int]) -> int:
    """How many of a stack's addresses are native; the others are words for Python frames."""
    count = len(addresses)
    while count and addresses[count - 1] >> _TAG_SHIFT == _TAG:
        count -= 1
    return count
