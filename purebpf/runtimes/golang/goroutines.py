"""The goroutines of a Go program that wait, with their stacks.

Go keeps them in runtime.allgs, a slice of pointers to struct g (Go's src/runtime/runtime2.go):

    g    stack.lo, stack.hi, stackguard0, stackguard1, _panic, _defer, m,
         sched: sp, pc, g, ctxt, ret (until Go 1.24), lr, bp,
         syscallsp, syscallpc, syscallbp (from Go 1.23), stktopsp, param,
         atomicstatus (u32), stackLock (u32), goid ...

The offsets of sched.bp and of the status depend on the version. The values tell which offsets are
right: frame pointers lead into the stack, and numbers of goroutines are unique.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["Goroutine", "waiting_goroutines"]

_G = struct.Struct("<24Q")
_LOW, _HIGH, _SP, _PC, _SELF = 0, 1, 7, 8, 9
"""In words."""
_FRAME_POINTERS, _STATUSES = (13, 12), (18, 19, 17)
"""The words that may be sched.bp, and the status, the likeliest first."""
_WAITING = 4
_KNOWN = frozenset({0, 1, 2, 3, 4, 6, 8, 9})
"""States of a goroutine: _Gidle to _Gpreempted."""
_LIVING = frozenset({1, 2, 3, 4, 8, 9})
_SCANNED = 0x1000
"""A bit of the status: the collector looks at the stack."""
_MOST_FRAMES = 64
_MOST_LISTED = 1 << 16
_LARGEST_STACK = 1 << 30
_PAIR = struct.Struct("<QQ")
_MOSTLY = 0.8


class Goroutine(NamedTuple):
    """A goroutine that waits.

    Attributes:
        number: Go's own.
        sp: its stack pointer: it has not moved while this and `addresses` stay the same.
        addresses: of its stack, the innermost first; all but the first are return addresses.
    """

    number: int
    sp: int
    addresses: tuple[int, ...]


def waiting_goroutines(memory: Memory, listed: int, most: int) -> tuple[list[Goroutine], float]:
    """Return goroutines that wait, and how many each of them stands for.

    Args:
        memory: of the process.
        listed: the address of runtime.allgs.
        most: how many to read; if there are more, it is one of two, one of three...

    Raises:
        UnreadableError: the memory is gone, or holds something else.
    """
    array, count = _PAIR.unpack(memory.bytes(listed, _PAIR.size))
    if not 0 < count <= _MOST_LISTED:
        raise UnreadableError
    pointers = struct.unpack(f"<{count}Q", memory.bytes(array, 8 * count))
    step = -(-count // most)
    structs = [g for g in (_read(memory, at) for at in pointers[::step]) if g is not None]
    status_at = _status_word(structs)
    waiting = [g for g in structs if _status(g, status_at) == _WAITING]
    pointer_at = _frame_pointer_word(waiting)
    return [
        Goroutine(g[status_at + 1], g[_SP], tuple(_walk(memory, g, pointer_at))) for g in waiting
    ], float(step)


def _read(memory: Memory, at: int) -> tuple[int, ...] | None:
    """The words of a struct g; None: there is something else."""
    try:
        words = _G.unpack(memory.bytes(at, _G.size))
    except UnreadableError:
        return None
    return words if words[_SELF] in (at, 0) else None


def _status(words: Sequence[int], at: int) -> int:
    return words[at] & 0xFFFFFFFF & ~_SCANNED


def _status_word(structs: Sequence[Sequence[int]]) -> int:
    """The word of the status, which the number of the goroutine follows.

    Raises:
        UnreadableError: none is.
    """
    for at in _STATUSES:
        if not all(_status(words, at) in _KNOWN for words in structs):
            continue
        numbers = [words[at + 1] for words in structs if _status(words, at) in _LIVING]
        is_plain = all(0 < number < 1 << 48 for number in numbers)
        if numbers and is_plain and len(set(numbers)) == len(numbers):
            return at
    raise UnreadableError


def _frame_pointer_word(waiting: Sequence[Sequence[int]]) -> int:
    """The word of sched.bp. Raises: UnreadableError: no word has frame pointers."""
    for at in _FRAME_POINTERS:
        fitting = sum(words[_SP] <= words[at] < words[_HIGH] for words in waiting)
        if fitting >= _MOSTLY * len(waiting):
            return at
    raise UnreadableError


def _walk(memory: Memory, words: Sequence[int], pointer_at: int) -> Iterator[int]:
    """The addresses of a stack, by frame pointers."""
    low, high, pointer = words[_SP], words[_HIGH], words[pointer_at]
    yield words[_PC]
    if not low < high <= low + _LARGEST_STACK:
        return
    for _ in range(_MOST_FRAMES):
        if not low <= pointer <= high - _PAIR.size:
            return
        try:
            following, address = _PAIR.unpack(memory.bytes(pointer, _PAIR.size))
        except UnreadableError:
            return
        if not address:
            return
        yield address
        low, pointer = pointer + _PAIR.size, following
