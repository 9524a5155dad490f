"""Code that starts programs and stacks, in files that have no entries for it.

The entry point of a program is assembly in every libc, and so are the first instructions of a
fiber of Boost.Context. Nothing called them, so that a stack ends there. Between the entry point and
`main`, musl has one more frame, of `libc_start_main_stage2` (src/env/__libc_start_main.c). rustc
writes a `main` that calls Rust's own, without an entry if panics abort (1.95).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple
from purebpf.unwind.x86_prologue import stack_depths

__all__ = ["StartCode", "find_start_code"]

_ENTRY_BYTES = 64
"""Of the code at an entry point, in which it calls the first function. glibc's has 38."""
_SEARCHED = 1 << 20
"""Bytes of a text that is searched for other code; Boost.Context's library has 1 KB of it."""
_LONGEST = 256
"""Bytes of musl's function up to its last call."""
_OFFSET = struct.Struct("<i")
_LAST_CALL = compile_later(
    rb"(?:\xff\x15.{4}|\xe8.{4})(?=\xf4|\xcc|\x0f\x0b|.{0,12}\x0f\x05)", re.DOTALL
)
"""A call that does not return, before hlt, int3, ud2 or a system call."""
_MUSL_START = b"\x48\x31\xed\x48\x89\xe7"
_MUSL_ENTRY = compile_later(
    rb"\x48\x31\xed\x48\x89\xe7\x48\x8d\x35.{4}\x48\x83\xe4\xf0\xe8.{4}", re.DOTALL
)
"""xor %rbp, %rbp; mov %rsp, %rdi; lea _DYNAMIC(%rip), %rsi; and $-16, %rsp; call."""
_STAGE2 = compile_later(
    rb"(?:\x48\x8d\x05(?P<offset>.{4})|\xb8(?P<address>.{4})).{0,24}?\xff\xe0", re.DOTALL
)
"""lea libc_start_main_stage2(%rip), %rax, or mov $libc_start_main_stage2, %eax; jmp *%rax."""
_CALLS_MAIN = compile_later(rb"(?:\xff[\xd0-\xd7]|\x41\xff[\xd0-\xd7])(?=\x89\xc7\xe8)")
"""call *%reg; mov %eax, %edi; call exit."""
_LOADS_MAIN = compile_later(
    rb"\x48(?:\x8d\x3d(?P<offset>.{4})|\xc7\xc7(?P<address>.{4}))(?=\xff\x15|\x67?\xe8)", re.DOTALL
)
"""lea main(%rip), %rdi, or mov $main, %rdi; a call: glibc's entry point."""
_MAIN_ENDS = compile_later(
    rb"(?:\xff\x15.{4}|\xff[\xd0-\xd7]|\xe8.{4})(?:[\x58\x59]|\x48\x83\xc4.)(?=\xc3)", re.DOTALL
)
"""A call; pop %rax, pop %rcx or add $n, %rsp; ret."""
_FIBER_END = b"\x48\x31\xff\xe8"
_FIBER = compile_later(
    rb"\xff\xe3(?P<end>(?:\xf3\x0f\x1e\xfa)?\x48\x31\xff\xe8.{4}\xf4)", re.DOTALL
)
"""jmp *%rbx; xor %rdi, %rdi; call _exit; hlt: make_fcontext's, which its functions return to."""


class StartCode(NamedTuple):
    """A piece of code without an entry.

    Attributes:
        start, end: its addresses.
        depths: each place at which the bytes on the stack above the return address change, and
            how many they are from there on; empty for code that nothing called.
    """

    start: int
    end: int
    depths: tuple[tuple[int, int], ...] = ()


def find_start_code(
    code: Callable[[int, int], bytes], entry: int, start: int, end: int
) -> Iterator[StartCode]:
    """Yield such code of a file of x86-64.

    Args:
        code: returns a number of bytes at an address of the file, or fewer.
        entry: its entry point.
        start: where its text begins.
        end: where its text ends.
    """
    first = code(entry, _ENTRY_BYTES) if start <= entry < end else b""
    musl = _MUSL_ENTRY.match(first) if first.startswith(_MUSL_START) else None
    called = musl or _LAST_CALL.search(first)
    if called:
        yield StartCode(entry, entry + called.end())
    yield from _main(code, first, entry)
    if end - start > _SEARCHED:
        return
    text = code(start, end - start)
    for fiber in _FIBER.finditer(text) if _FIBER_END in text else ():
        yield StartCode(start + fiber.start("end"), start + fiber.end("end"))
    if musl:
        yield from _stage2(text, start)


def _main(code: Callable[[int, int], bytes], first: bytes, entry: int) -> Iterator[StartCode]:
    """Yield a `main` of one path, with one call before its end: the entry point has its address."""
    loads = _LOADS_MAIN.search(first)
    if not loads:
        return
    if loads["offset"]:
        start = entry + loads.end() + _OFFSET.unpack(loads["offset"])[0]
    else:
        start = _OFFSET.unpack(loads["address"])[0]
    body = code(start, _ENTRY_BYTES) if start > 0 else b""
    ends = _MAIN_ENDS.search(body)
    depths = stack_depths(body[: ends.end()]) if ends else None
    if ends and depths and depths[-1] == (ends.end(), 0):
        changes = tuple((start + offset, depth) for offset, depth in depths)
        yield StartCode(start, start + ends.end() + 1, changes)


def _stage2(text: bytes, start: int) -> Iterator[StartCode]:
    """Yield musl's function that calls main: others only jump to it, through a register."""
    for jump in _STAGE2.finditer(text):
        if jump["offset"]:
            at = jump.end("offset") + _OFFSET.unpack(jump["offset"])[0]
        else:
            at = _OFFSET.unpack(jump["address"])[0] - start
        body = text[at : at + _LONGEST] if 0 <= at < len(text) else b""
        called = _CALLS_MAIN.search(body)
        depths = stack_depths(body[: called.end()]) if called else None
        if called and depths:
            where = start + at
            changes = tuple((where + offset, depth) for offset, depth in depths)
            yield StartCode(where, where + called.end(), changes)
