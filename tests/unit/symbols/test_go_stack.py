"""How deep the stack is at each instruction of Go's functions."""

from __future__ import annotations

import os
import re
import struct
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.go_stack import ELSEWHERE, FRAME_ELSEWHERE, INTERRUPTED, OUTERMOST, go_stack
from purebpf.symbols.go_table import go_functions
from purebpf.unwind.rule import (
    DEPTH_BITS,
    DEPTH_ELSEWHERE,
    DEPTH_FRAME_ELSEWHERE,
    DEPTH_INTERRUPTED,
    DEPTH_OUTERMOST,
)
from tests.unit.symbols.symbol_file import symbol_file
from tests.unit.symbols.test_go_table import _image

_TEXT = 0x1000
_STEPS = [(0x100, [(0, 4), (8, 10), (0x48, 30), (0, 20)]), (0x140, [(0, 9)])]
"""(start, [(depth, bytes)]) of functions."""


def _uleb(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _table(quantum=1):
    rows, functions, numbers = b"", b"", b"\0"
    head = 8 * len(_STEPS) + 4
    for start, steps in _STEPS:
        rows += struct.pack("<II", start, head + len(functions))
        functions += struct.pack("<IiiII", start, 0, 0, 0, len(numbers))
        before = -1
        for depth, size in steps:
            change = depth - before
            numbers += _uleb(change << 1 if change >= 0 else ~change << 1 | 1) + _uleb(size)
            before = depth
        numbers += b"\0"
    rows += struct.pack("<I", 0x160)
    at = 8 + 64
    words = (len(_STEPS), 0, _TEXT, at, 0, 0, at, at + len(numbers))
    return struct.pack("<IHBB8Q", 0xFFFFFFF1, 0, quantum, 8, *words) + numbers + rows + functions


@pytest.mark.parametrize("quantum", [1, 4])
def test_the_depth_is_known_at_every_instruction(quantum):
    stack = go_stack(_image(_table(quantum)))
    for start, steps in _STEPS:
        at = start
        for depth, size in steps:
            for address in range(at, at + size * quantum):
                if address < 0x140 or start == 0x140:
                    assert stack.depth(_TEXT + address) == depth
            at += size * quantum


@pytest.mark.parametrize("address", [0, _TEXT, _TEXT + 0xFF, _TEXT + 0x200, 1 << 40])
def test_other_addresses_are_not_known(address):
    assert go_stack(_image(_table())).depth(address) is None


@pytest.mark.parametrize("quantum", [1, 4])
def test_changes_are_where_the_depth_of_an_instruction_changes(quantum):
    stack = go_stack(_image(_table(quantum)))
    for start in range(_TEXT - 8, _TEXT + 0x160, 7):
        end = start + 0x61
        changes = dict(stack.depths(start, end))
        assert min(changes) == start
        assert max(changes) < end
        depth = None
        for address in range(start, end):
            depth = changes.get(address, depth)
            assert depth == stack.depth(address)


def test_the_unwinder_has_the_same_numbers():
    assert (ELSEWHERE, OUTERMOST) == (DEPTH_ELSEWHERE, DEPTH_OUTERMOST)
    assert (INTERRUPTED, FRAME_ELSEWHERE) == (DEPTH_INTERRUPTED, DEPTH_FRAME_ELSEWHERE)
    assert DEPTH_BITS & INTERRUPTED
    assert DEPTH_BITS & FRAME_ELSEWHERE


def test_files_without_a_table():
    assert go_stack(ElfImage.of_bytes(symbol_file())) is None
    assert go_stack(_image(b"")) is None


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damage_is_another_depth_or_none(data):
    table = bytearray(_table())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(table) - 1))
        table[at : at + 4] = data.draw(st.sampled_from([b"\xff" * 4, bytes(4), b"\x7f", b"\x80"]))
    stack = go_stack(_image(bytes(table[: data.draw(st.integers(0, len(table)))])))
    for address in range(_TEXT + 0xF0, _TEXT + 0x170) if stack else ():
        assert (stack.depth(address) or 0) >= 0
    assert not stack or len(list(stack.depths(_TEXT, _TEXT + 0x170))) < 1000


_INSTEAD = {
    b"systemstack": ELSEWHERE,
    b"asmcgocall": ELSEWHERE,
    b"morestack": ELSEWHERE,
    b"mcall": OUTERMOST,
    b"goexit": OUTERMOST,
    b"mstart": OUTERMOST,
    b"rt0_go": OUTERMOST,
}
_PROGRAM = """package main
import "os"
//go:noinline
func leaf(n int) int { return n * 3 }
//go:noinline
func frame(n int) int { var a [64]int; for i := range a { a[i] = leaf(n + i) }; return a[n&63] }
func main() { println(frame(len(os.Args))) }
"""


@pytest.mark.needs("go")
def test_depths_are_those_of_the_call_frame_information(tmp_path):
    """The same program, unstripped, has .debug_frame, which readelf interprets."""
    (tmp_path / "program.go").write_text(_PROGRAM)
    path = tmp_path / "program"
    cache = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    command = ["go", "build", "-o", str(path), str(tmp_path / "program.go")]
    subprocess.run(command, env=cache, check=True)
    image = ElfImage.of_bytes(path.read_bytes())
    stack = go_stack(image)
    functions = [
        (start, size, name.removeprefix(b"runtime.")) for start, size, name in go_functions(image)
    ]
    changing = {
        address: _INSTEAD[name]
        for start, size, name in functions
        if name in _INSTEAD and stack.depth(start) != 0  # wrappers of the same name have a frame
        for address in range(start, start + size)
    }
    assert {*changing.values()} == {OUTERMOST, ELSEWHERE}
    assert {stack.depth(address) - depth for address, depth in changing.items()} == {0}
    added = {
        name: {(stack.depth(at) or 0) & DEPTH_BITS for at in range(start, start + size)} - {0}
        for start, size, name in functions
        if name in (b"nanotime1", b"asyncPreempt", b"sigpanic")
    }
    assert added == {
        b"nanotime1": {FRAME_ELSEWHERE},
        b"asyncPreempt": {INTERRUPTED},
        b"sigpanic": {INTERRUPTED},
    }
    window = range(min(changing) & -1024, max(changing) + 1)
    known = {address: stack.depth(address) for address in window}
    depth = None
    changes = dict(stack.depths(window.start, window.stop))
    for address in window:
        depth = changes.get(address, depth)
        assert depth == known[address]
    listed = subprocess.run(
        ["readelf", "--debug-dump=frames-interp", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    _, _, listed = listed.partition(" FDE ")
    rows = re.findall(r"^([0-9a-f]{16}) rsp\+(\d+) ", listed, re.MULTILINE)
    rows = [row for row in rows if int(row[0], 16) not in changing]
    assert len(rows) > 1000
    wrong = [
        row
        for row in rows
        if (depth := stack.depth(int(row[0], 16))) is not None
        and depth & ~DEPTH_BITS != int(row[1]) - 8
    ]
    unknown = [row for row in rows if stack.depth(int(row[0], 16)) is None]
    assert not wrong
    assert len(unknown) < len(rows) // 100
