"""Entries for code that starts programs and fibers, which its file has none for."""

from __future__ import annotations

import struct

import pytest

from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.rule import How
from purebpf.unwind.start_code import StartCode, find_start_code
from purebpf.unwind.x86_prologue import stack_depths
from tests.unit.unwind.cfi_builder import FRAME, TEXT, Image, Section

_GLIBC = bytes.fromhex("31ed4989d15e4889e24883e4f050544531c031c9488d3db5ffffff")
"""xor %ebp, %ebp ...; lea main(%rip), %rdi."""
_POINTER_CALL = bytes.fromhex("ff152f2f0000")
_MUSL = bytes.fromhex("4831ed4889e7488d3583eafffe4883e4f0e800000000")
_FIBER = bytes.fromhex("55ffe34831ffe849fefffff4")
_STAGE2 = bytes.fromhex(
    "4155" "4863c6" "4154" "4c8d6cc208" "4989d4" "55" "4889c5" "53" "4889fb" "4883ec08"
    "e8a0ffffff" "89ef" "4c89ea" "4c89e6" "ffd3" "89c7" "e83ffbffff"
)  # fmt: skip
_JUMPS = bytes.fromhex("5d415c415dffe0")
"""pop %rbp; pop %r12; pop %r13; jmp *%rax."""


def _find(code: bytes, entry: int = TEXT) -> list[StartCode]:
    def read(address: int, size: int) -> bytes:
        return code[address - TEXT :][:size]

    return list(find_start_code(read, entry, TEXT, TEXT + len(code)))


@pytest.mark.parametrize(
    ("code", "size"),
    [
        (_GLIBC + _POINTER_CALL + b"\xf4", 33),
        (_GLIBC + b"\x67\xe8\x02\0\0\0\xf4\xcc", 33),  # addr32 call, as linkers relax it
        (_MUSL, len(_MUSL)),  # it calls what follows, which may be aligned
        (_MUSL[:-4] + b"\x03\0\0\0", len(_MUSL)),
        (b"\x31\xed\xe8\x10\0\0\0\x89\xc7\xb8\x3c\0\0\0\x0f\x05", 7),  # exit(main())
        (_GLIBC + _POINTER_CALL + b"\x90" * 40, 0),  # what follows it may be called, too
        (b"\xe9\x10\0\0\0" + b"\x90" * 60, 0),
        (b"", 0),
    ],
)
def test_an_entry_point_ends_behind_its_call(code: bytes, size: int) -> None:
    expected = [StartCode(TEXT, TEXT + size)] if size else []
    assert _find(code + bytes(64)) == expected


def test_an_entry_point_outside_of_the_text() -> None:
    assert not _find(_GLIBC + _POINTER_CALL + b"\xf4", entry=0)


def test_the_end_of_a_fiber_begins_behind_its_jump() -> None:
    code = b"\xc3" * 40 + _FIBER + b"\x90" * 9
    assert _find(code, entry=0) == [StartCode(TEXT + 43, TEXT + 52)]


_RUST_MAIN = "504889f14863d7488d0542ffffff48890424488d35efd303004889e74531c0"
"""push %rax; loads of arguments, one of which is stored at the stack pointer."""


@pytest.mark.parametrize("is_absolute", [False, True])
@pytest.mark.parametrize(
    ("code", "depths"),
    [
        (_RUST_MAIN + "ff15d3f1030059c3", [(0, 0), (1, 8), (38, 0)]),
        ("4883ec18ffd04883c418c3", [(0, 0), (4, 24), (10, 0)]),
        (_RUST_MAIN + "ff15d3f10300c3", []),  # it leaves a word on the stack
        ("4883ec18ffd059c3", []),  # it takes less than it put there
        ("507402ffd059c3", []),  # a branch: it may have other paths
        ("50ffd09059c3", []),
    ],
)
def test_a_main_of_one_path(code: str, depths: list[object], *, is_absolute: bool) -> None:
    body = bytes.fromhex(code)
    at = 64
    load = b"\x48\x8d\x3d" + struct.pack("<i", at - len(_GLIBC))
    if is_absolute:
        load = b"\x48\xc7\xc7" + struct.pack("<I", TEXT + at)
    first = _GLIBC[:-7] + load + _POINTER_CALL + b"\xf4"
    found = _find(first.ljust(at, b"\x90") + body + bytes(64))[1:]
    assert len(found) == bool(depths)
    for main in found:
        assert (main.start, main.end) == (TEXT + at, TEXT + at + len(body))
        assert [(offset - main.start, depth) for offset, depth in main.depths] == depths


@pytest.mark.parametrize("is_absolute", [False, True])
def test_the_function_of_musl_that_calls_main(*, is_absolute: bool) -> None:
    at = len(_MUSL) + 10
    loads = at + len(_STAGE2) + 3
    load = b"\x48\x8d\x05" + struct.pack("<i", at - loads - 7)
    if is_absolute:
        load = b"\xb8" + struct.pack("<I", TEXT + at)
    code = _MUSL + b"\x90" * 10 + _STAGE2 + b"\x90" * 3 + load + _JUMPS + bytes(64)
    _, found = _find(code)
    assert (found.start, found.end) == (TEXT + at, TEXT + at + 42)
    depths = [(offset - found.start, depth) for offset, depth in found.depths]
    assert depths == [(0, 0), (2, 8), (7, 16), (16, 24), (20, 32), (27, 40)]
    assert len(_find(_GLIBC + _POINTER_CALL + b"\xf4" + code[:1] + code[22:])) == 1


@pytest.mark.parametrize(
    ("code", "depths"),
    [
        ("554889e5415750", [(0, 0), (1, 8), (6, 16), (7, 24)]),
        ("4881ec000100005b", [(0, 0), (7, 256), (8, 248)]),
        ("4883c4f84883ec08", [(0, 0), (4, 8), (8, 16)]),
        ("8b048d00000000488d5c24084989e4", [(0, 0)]),
        ("48c7c030104000bfb0170001c60701ff5508", [(0, 0)]),
        ("4839c44885e4", [(0, 0)]),  # cmp %rax, %rsp; test %rsp, %rsp
        ("4883e4f0", None),  # and $-16, %rsp
        ("488d65f8", None),  # lea -8(%rbp), %rsp
        ("4889ec", None),  # mov %rbp, %rsp
        ("488b2424", None),  # mov (%rsp), %rsp
        ("4829c4", None),  # sub %rax, %rsp
        ("c3", None),
        ("ffe0", None),
        ("4883ec", None),  # the rest is missing
        ("0f05", None),
    ],
)
def test_stack_depths(code: str, depths: list[tuple[int, int]] | None) -> None:
    assert stack_depths(bytes.fromhex(code)) == depths


def test_a_file_without_entries_has_these() -> None:
    at = len(_MUSL) + 10
    load = b"\x48\x8d\x05" + struct.pack("<i", -len(_STAGE2) - 7)
    image = Image({}, code=_MUSL + b"\x90" * 10 + _STAGE2 + load + _JUMPS)
    image.entry = TEXT
    cfi = CfiFile(image)
    row = cfi.row(TEXT + 4)
    assert row is not None
    assert row.registers[row.ra][0] is How.UNDEFINED
    by_depth = cfi.row(TEXT + at + 41)
    assert by_depth is not None
    assert (by_depth.cfa_register, by_depth.cfa) == (7, 48)
    assert by_depth.registers[row.ra] == -8
    assert cfi.row(TEXT + at + 42) is None


def test_entries_of_the_file_are_preferred() -> None:
    section = Section()
    section.fde(TEXT, 0x80, b"")
    section.fde(TEXT + 0x2000, 0x80, b"")
    image = Image({".eh_frame": (FRAME, section.data)}, code=_GLIBC + _POINTER_CALL + b"\xf4")
    image.entry = TEXT
    row = CfiFile(image).row(TEXT + 4)
    assert row is not None
    assert row.registers[row.ra] == -8
