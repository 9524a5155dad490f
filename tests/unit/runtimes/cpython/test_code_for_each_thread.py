"""Without a GIL each thread has its own copy of a function's instructions (CPython 3.14)."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.cpython.code_objects import CodeObjects
from purebpf.runtimes.cpython.frames import read_frames
from purebpf.runtimes.cpython.layout import Layout
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.memory import Memory

VERSION = (3, 14)
LAYOUT = LAYOUTS[VERSION]._replace(code_tlbc=LAYOUTS[VERSION].code_bytes - 8, frame_tlbc=72)
THREAD, INNER, OUTER, CODE, NAME, FILE, LINES, TYPE, TYPE_NAME, TABLE = (
    0x10000 + 0x400 * number for number in range(10)
)
FIRST_LINE = 40
OWN_COPY = 0x7F0000001000  # of a thread: nothing reads it
LINE_TABLE = bytes([0xE8, 0x00, 0xE8, 0x02])
"""Objects/locations.md: of the first code unit the first line, of the second the next one."""


class Process:
    """A piece of memory with two frames of one function."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._content = bytearray(0x4000)
        self.put(THREAD + layout.frame, INNER)
        self._frame(INNER, OUTER, CODE + layout.code_bytes + 2, copy=0)
        self._frame(OUTER, 0, OWN_COPY, copy=2)
        self.put(TABLE, 3, CODE + layout.code_bytes, 0, OWN_COPY)
        self.put(CODE + layout.code_tlbc, TABLE)
        self.put(CODE + layout.bytes_length - 8, TYPE)
        self.put(TYPE + layout.type_name, TYPE_NAME)
        self._bytes(TYPE_NAME, b"code\0")
        self.put(CODE + layout.code_qualname, NAME)
        self.put(CODE + layout.code_filename, FILE)
        self.put(CODE + layout.code_lines, LINES)
        self._bytes(CODE + layout.code_first_line, struct.pack("<I", FIRST_LINE))
        self._text(NAME, b"Pool.get")
        self._text(FILE, b"/srv/pool.py")
        self.put(LINES + layout.bytes_length, len(LINE_TABLE))
        self._bytes(LINES + layout.bytes_data, LINE_TABLE)

    def read(self, address: int, size: int) -> bytes:
        at = address - THREAD
        return bytes(self._content[at : at + size]) if 0 <= at < len(self._content) else b""

    def put(self, address: int, *words: int) -> None:
        self._bytes(address, struct.pack(f"<{len(words)}Q", *words))

    def _bytes(self, address: int, content: bytes) -> None:
        at = address - THREAD
        self._content[at : at + len(content)] = content

    def _frame(self, address: int, previous: int, instruction: int, *, copy: int) -> None:
        layout = self._layout
        self.put(address + layout.frame_code, CODE)
        self.put(address + layout.frame_previous, previous)
        self.put(address + layout.frame_instruction, instruction)
        self._bytes(address + layout.frame_tlbc, struct.pack("<I", copy))

    def _text(self, address: int, text: bytes) -> None:
        layout = self._layout
        state = (1 << 2 | 1 << 5 | 1 << 6) << layout.string_shift  # kind 1, compact, ASCII
        self.put(address + layout.string_length, len(text))
        self._bytes(address + layout.string_state, struct.pack("<I", state))
        self._bytes(address + layout.ascii_size, text)


@pytest.mark.parametrize("shift", [0, 6])
def test_each_frame_has_the_line_by_the_copy_of_its_thread(shift: int) -> None:
    layout = LAYOUT._replace(string_shift=shift)
    memory = Memory(Process(layout).read)
    codes = CodeObjects(VERSION, layout, memory)
    stack = read_frames(VERSION, layout, memory, codes, THREAD)
    assert stack.problem == ""
    assert [(frame.name, frame.file, frame.line) for frame in stack.frames] == [
        ("Pool.get", "/srv/pool.py", FIRST_LINE + 1),
        ("Pool.get", "/srv/pool.py", FIRST_LINE),
    ]


def test_a_copy_that_is_not_there_is_a_reason() -> None:
    process = Process(LAYOUT)
    process.put(CODE + LAYOUT.code_tlbc, 1 << 62)
    memory = Memory(process.read)
    stack = read_frames(VERSION, LAYOUT, memory, CodeObjects(VERSION, LAYOUT, memory), THREAD)
    assert stack == ((), "a frame cannot be read")


def test_without_lines_no_copy_is_looked_for() -> None:
    process = Process(LAYOUT)
    process.put(CODE + LAYOUT.code_tlbc, 1 << 62)
    memory = Memory(process.read)
    codes = CodeObjects(VERSION, LAYOUT, memory, lines=False)
    stack = read_frames(VERSION, LAYOUT, memory, codes, THREAD)
    assert [frame.name for frame in stack.frames] == ["Pool.get", "Pool.get"]
