"""Java frames among the addresses of a stack: words that no address is.

bpf_src/include/java_layout.h: 11 bits of tag, 1 for a frame of the interpreter, 28 for the number
of a compilation or of an interpreted method, 24 for the place in its code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from purebpf.symbols.frame import Frame, Unknown
from purebpf.tuples import NamedTuple

__all__ = [
    "IN_HEAP",
    "MOST_COPIED",
    "JavaNames",
    "JavaWord",
    "has_java",
    "is_java",
    "no_method_word",
    "split_java",
    "user_space_word",
]

_TAG, _TAG_SHIFT = 0x2A6, 53
_INTERPRETED = 1 << 52
_NUMBER_SHIFT = 24
_NUMBER = (1 << 28) - 1
_EXACT = 1 << 23
_STUB = 1 << 22
IN_HEAP = 1
_COUNT_BITS = 17
_USER_SPACE = 511
"""In place of a CPU: numbers that user space gives."""
MOST_COPIED = (1 << _COUNT_BITS + 2) - 2
"""Words that user space has, and one for all others."""


class JavaWord(NamedTuple):
    """A frame.

    Attributes:
        number: of the code; -1: it is no method. Its place is then `IN_HEAP` where a virtual
            thread has its callers in the heap.
        place: bytes from the start of compiled code, or the index of a bytecode.
        is_interpreted: whether the interpreter runs it.
        copied: the number that `user_space_word` got; None: BPF has walked the frame.
    """

    number: int
    place: int
    is_interpreted: bool
    copied: int | None = None


class JavaNames(Protocol):
    """The interface of tables of Java methods:
    `purebpf.observe.runtimes.hotspot.java_tables.JavaTables`.
    """

    def frames(self, word: int) -> Sequence[Frame | Unknown]:
        """The functions of a word, innermost first; none for code that is no method."""
        ...

    def has(self, pid: int) -> bool:
        """Return True if the frames of a process have names."""
        ...


def is_java(word: int) -> bool:
    """Return True if an address of a stack is a word for a Java frame."""
    return word >> _TAG_SHIFT == _TAG


def has_java(addresses: Sequence[int]) -> bool:
    """Return True if a stack has words for Java frames."""
    return any(word >> _TAG_SHIFT == _TAG for word in addresses)


def split_java(word: int) -> JavaWord:
    """The parts of a word."""
    number = word >> _NUMBER_SHIFT & _NUMBER
    is_interpreted = bool(word & _INTERPRETED)
    place = word & (0xFFFF if is_interpreted else _EXACT - 1)
    if number == _STUB:
        return JavaWord(-1, place, is_interpreted)
    copied = None
    if number >> _COUNT_BITS & 511 == _USER_SPACE and number != _NUMBER:
        top, low = number >> _COUNT_BITS + 9, number & (1 << _COUNT_BITS) - 1
        copied = top << _COUNT_BITS | low
    return JavaWord(number, place, is_interpreted, copied)


def user_space_word(number: int) -> int:
    """Return the word of a frame that user space has walked; `number` is at most `MOST_COPIED`."""
    top, low = number >> _COUNT_BITS, number & (1 << _COUNT_BITS) - 1
    number = (top << 9 | _USER_SPACE) << _COUNT_BITS | low
    return _TAG << _TAG_SHIFT | number << _NUMBER_SHIFT


def no_method_word() -> int:
    """Return the word of code that is no method."""
    return _TAG << _TAG_SHIFT | _STUB << _NUMBER_SHIFT
