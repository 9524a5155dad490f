"""Code of a file that no entry has rules for: whether its functions keep frame pointers.

Following a register that holds something else leads past callers, to a frame that looks right. So
the frame pointer is followed only where the code around an address sets it up as one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple
from purebpf.unwind.leaf import has_set_up

__all__ = ["BLOCK", "SHORTEST", "Gap", "Gaps", "keeps_frame_pointers"]

SHORTEST = 16
"""Bytes of code; what is shorter is padding between functions."""
BLOCK = 1 << 16
"""Bytes of code that are judged together, with half as many before and behind them."""
_MOST = 4096
"""Blocks of one file that are remembered."""
_PUSH, _REX = 0x55, 0x41
_HIGH_PUSHES = range(0x54, 0x58)
"""The second byte of push %r12 to push %r15, behind `_REX`."""
_AFTER_PUSH = compile_later(
    rb"(?:(?!\x48\x83\x3d)(?P<kept>.{0,16}?(?:\x48\x89\xe5|\x48\x8b\xec))"
    rb"|(?P<used>\x53|\x41[\x54-\x57]|\x48\x89[^\xe5]))",
    re.DOTALL,
)
"""The code behind push %rbp: a frame pointer, if mov %rsp, %rbp follows soon; else a register that
is to be used: behind push %r12 and the like, or before push %rbx, push %r12, mov %rdi, %rbp.

The start-up code of compilers is left out, which is in every program: push %rbp; cmpq $0, ....
"""
_OF_START_UP = 1
"""Functions without a frame that the start-up code calls: deregister_tm_clones."""
_START = 32
"""Bytes of a function's start in which it sets up its frame."""
_CALL_OPCODE, _CALL = b"\xe8", struct.Struct("<i")
_FEW = 8
"""Of so many functions one may look otherwise: data among the code."""


class Gap(NamedTuple):
    """Addresses between two entries."""

    start: int
    end: int


class Gaps:
    """The gaps of one file of x86-64.

    Args:
        code: the bytes at an address of the file.
        bounds: the gap around an address.
    """

    def __init__(self, code: Callable[[int, int], bytes], bounds: Callable[[int], Gap]) -> None:
        self._code = code
        self._bounds = bounds
        self._known: dict[tuple[int, int], bool] = {}

    def keeps(self, address: int) -> bool:
        """Return True if code around an address in a gap keeps frame pointers, or is not there."""
        gap = self._bounds(address)
        if gap.end - gap.start < SHORTEST:
            return True
        block = address & -BLOCK
        key = gap.start, block
        known = self._known.get(key)
        if known is None:
            start = max(gap.start, block - BLOCK // 2)
            end = min(gap.end, block + BLOCK + BLOCK // 2)
            code = self._code(start, end - start)
            known = not code or keeps_frame_pointers(code)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = known
        return known


def keeps_frame_pointers(code: bytes) -> bool:
    """Return True if functions in code of x86-64 set up frame pointers, and few do otherwise."""
    kept, used = _count_pushes(code)
    if not kept or used * _FEW > kept:
        return False
    others = sum(not has_set_up(code[start : start + _START]) for start in _called(code))
    return (others - _OF_START_UP) * 2 <= kept


def _count_pushes(code: bytes) -> tuple[int, int]:
    """Return how often push %rbp saves a frame pointer, and how often a register to be used.

    A search for the byte takes a tenth of the time of a pattern that begins with alternatives.
    """
    kept = used = end = 0
    match = _AFTER_PUSH.match
    at = code.find(_PUSH)
    while at >= 0:
        before = code[at - 1] if at else 0
        if at - 2 >= end and code[at - 2] == _REX and before in _HIGH_PUSHES:
            used += 1
            end = at + 1
        elif before != _REX and (found := match(code, at + 1)):
            if found.lastgroup == "kept":
                kept += 1
            else:
                used += 1
            end = found.end()
        at = code.find(_PUSH, max(at + 1, end))
    return kept, used


def _called(code: bytes) -> set[int]:
    """Return where direct calls in some code lead, inside of it."""
    starts = set()
    at = code.find(_CALL_OPCODE)
    while 0 <= at <= len(code) - 1 - _CALL.size:
        start = at + 1 + _CALL.size + _CALL.unpack_from(code, at + 1)[0]
        if 0 <= start < len(code) - _START:
            starts.add(start)
        at = code.find(_CALL_OPCODE, at + 1)
    return starts
