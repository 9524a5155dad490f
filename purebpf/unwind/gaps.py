"""Code of a file that no entry has rules for: whether its functions keep frame pointers.

Following a register that holds something else leads past callers, to a frame that looks right. So
the frame pointer is followed only where the code around an address sets it up as one.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple
from purebpf.unwind.leaf import has_set_up

__all__ = ["BLOCK", "PIECE", "SHORTEST", "FrameReader", "Gap", "Gaps", "keeps_frame_pointers"]

SHORTEST = 16
"""Bytes of code; what is shorter is padding between functions."""
BLOCK = 1 << 16
"""Bytes of code that are judged together, with half as many before and behind them."""
_MOST = 4096
"""Blocks of one file that are remembered."""
PIECE = 1 << 13
"""Bytes of code whose frames are read together: 25 ms."""
_BEFORE, _BEHIND = 1 << 9, 1 << 11
"""Bytes around them that are read, too: the first instructions of code that begins anywhere may be
misread, and functions go on to their returns.
"""
_MOST_PIECES = 32
_NO_FRAME = (-1, 0, 0, 0)
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


class CodeFrameLike(Protocol):
    """The frame from an instruction on; `purebpf.symbols.code_frames.CodeFrame` is one."""

    @property
    def offset(self) -> int:
        """The place of the instruction in the code."""

    @property
    def depth(self) -> int:
        """Bytes from the stack pointer to the return address; -1: not known."""

    @property
    def fp(self) -> int:
        """Bytes from the place of the saved frame pointer to the return address; 0: the register
        has it.
        """

    @property
    def base(self) -> int:
        """0, or the address that `depth` is from instead: 1, the frame pointer; 2, a word."""

    @property
    def slot(self) -> int:
        """Bytes from the stack pointer to that word."""


GapFrame = tuple[int, int, int, int]
"""The depth, where the frame pointer is, the base and the slot of a `CodeFrameLike`."""
FrameReader = Callable[[bytes, int], Sequence[CodeFrameLike]]


class Gaps:
    """The gaps of one file of x86-64.

    Args:
        code: the bytes at an address of the file.
        bounds: the gap around an address.
        read_frames: the frames in some code; `purebpf.symbols.code_frames.frames_of` is one.
    """

    def __init__(
        self,
        code: Callable[[int, int], bytes],
        bounds: Callable[[int], Gap],
        read_frames: FrameReader | None = None,
    ) -> None:
        self._code = code
        self._bounds = bounds
        self._read_frames = read_frames
        self._known: dict[tuple[int, int], bool] = {}
        self._pieces: dict[tuple[int, int], tuple[list[int], list[GapFrame]]] = {}

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

    @property
    def are_read(self) -> bool:
        """True if `frame` reads instructions."""
        return self._read_frames is not None

    def frame(self, address: int) -> GapFrame | None:
        """Return the depth of the stack and the place of the frame pointer at an address in a gap.

        As in `CodeFrameLike`. None: not known.
        """
        starts, frames = self._piece(address)
        at = bisect_right(starts, address) - 1
        found = frames[at] if at >= 0 else _NO_FRAME
        return None if found == _NO_FRAME else found

    def frames(self, start: int, end: int) -> Iterator[tuple[int, GapFrame | None]]:
        """Yield each address in a part of a gap at which the frame changes, `start` first."""
        at = start
        while at < end:
            stop = min(end, (at & -PIECE) + PIECE)
            yield at, self.frame(at)
            starts, frames = self._piece(at)
            for place in range(bisect_right(starts, at), bisect_right(starts, stop - 1)):
                found = frames[place]
                yield starts[place], None if found == _NO_FRAME else found
            at = stop

    def _piece(self, address: int) -> tuple[list[int], list[GapFrame]]:
        """Return where frames change around an address, and the frames from there on."""
        gap, begin = self._bounds(address), address & -PIECE
        start = max(gap.start, begin - _BEFORE)
        piece = self._pieces.get((start, begin))
        if piece is None:
            size = min(gap.end, begin + PIECE + _BEHIND) - start
            code = self._code(start, size) if size > 0 else b""
            frames = self._read_frames(code, start) if self._read_frames else ()
            piece = (
                [start + one.offset for one in frames],
                [(one.depth, one.fp, one.base, one.slot) for one in frames],
            )
            if len(self._pieces) >= _MOST_PIECES:
                self._pieces.clear()
            self._pieces[start, begin] = piece
        return piece


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
