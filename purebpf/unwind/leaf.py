"""Leaves of x86-64 without rules: whether the word at the stack pointer is their return address.

It is if a call stands before it, and that call leads to the code that runs, which has no frame yet,
none any more, or none at all. Calls through pointers and stubs of a PLT lead anywhere.
"""

from __future__ import annotations

import re
import struct
from enum import Enum

from purebpf.late_pattern import compile_later

__all__ = ["FAR", "NEAR", "Ahead", "call_target", "has_set_up", "is_plt_stub", "look_ahead"]

NEAR = 256
"""Bytes of a function's start in which a frame that was set up is looked for."""
FAR = 1 << 16
"""Bytes from a function's start to any of its instructions."""
_SOON = 16
"""Bytes before a return in which an epilogue has nothing left to give back."""
_DISPLACEMENT = struct.Struct("<i")
_WORD = (1 << 64) - 1
_SETS_UP = compile_later(rb"\x48\x89\xe5|\x48\x8b\xec", re.DOTALL)
_FREES = compile_later(
    rb".*?(?:(?P<frees>[\x58-\x5f]\xc3|\xc9[\xc2\xc3\xe9\xeb\xf3\xff]|\x48\x83\xc4|\x48\x81\xc4|\x48\x8d\x65)|\xc3)",
    re.DOTALL,
)
"""pop; ret. leave, before a return or a jump. add $n, %rsp. lea n(%rbp), %rsp. Or ret, which comes
before all of these."""
_STUB = compile_later(rb"(?:\xf3\x0f\x1e\xfa)?(?:\xf2?\xff\x25|\x68....\xf2?\xe9)", re.DOTALL)
"""jmp *GOT(%rip), perhaps behind endbr64; or the push of a number and a jump."""


def call_target(before: bytes, address: int) -> int | None:
    """Return where the direct call leads that stands before an address, or None.

    Args:
        before: the 8 bytes before it.
        address: where the call returns to.
    """
    if before[-5:-4] != b"\xe8" or (before[-7:-6] == b"\xff" and before[-6] & 0x38 == 0x10):
        return None
    return address + int(_DISPLACEMENT.unpack(before[-4:])[0]) & _WORD


def has_set_up(code: bytes) -> bool:
    """Return True if some code of a function's start has set up a frame pointer."""
    return _SETS_UP.search(code) is not None


class Ahead(Enum):
    """The effects of some code before it returns."""

    RETURNS_LATER = 0
    FREES_STACK = 1
    """It gives back room on the stack: its return address is not at the stack pointer."""
    RETURNS_SOON = 2
    """An epilogue has given it back already."""


def look_ahead(code: bytes) -> Ahead:
    """Return the effects of some code before it returns."""
    found = _FREES.match(code)
    if found is None:
        return Ahead.RETURNS_LATER
    if found.lastgroup:
        return Ahead.FREES_STACK
    return Ahead.RETURNS_SOON if found.end() <= _SOON else Ahead.RETURNS_LATER


def is_plt_stub(code: bytes) -> bool:
    """Return True if code is a stub that jumps through a table."""
    return _STUB.match(code) is not None
