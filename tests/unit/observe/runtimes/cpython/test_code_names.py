"""Names and lines of code objects of which the memory has another content when it is read."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest

from purebpf.observe.runtimes.cpython.code_names import CodeNames
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.cpython.line_hash import hash_table
from purebpf.symbols.python_words import CODE_SHIFT, TAG

VERSION = (3, 12)
LAYOUT = LAYOUTS[VERSION]
NAME, FILE, TABLE = 0x10000, 0x20000, 0x30000
ASCII = 1 << 2 | 1 << 5 | 1 << 6
NUMBER, FIRST_LINE = 6, 10
INSTRUCTION = 4  # the third of a code unit each


class Process:
    """What is where the code object was."""

    layout = LAYOUT

    def __init__(self, name: str, table: bytes) -> None:
        header = bytearray(LAYOUT.ascii_size)
        struct.pack_into("<Q", header, LAYOUT.string_length, len(name))
        struct.pack_into("<I", header, LAYOUT.string_state, ASCII)
        self.pieces = {
            NAME: bytes(header) + name.encode(),
            TABLE: bytes(LAYOUT.bytes_data) + table,
        }

    def read(self, address: int, size: int) -> bytes:
        for start, content in self.pieces.items():
            if start <= address < start + len(content):
                return content[address - start :][:size]
        return b""


def names_of(name: str, table: bytes, *, now: Process) -> CodeNames:
    """What is known of a code object that BPF met, when the process has changed to `now`."""
    file = "file.py"
    header = struct.pack(
        *("<6Q9I4x", 1, NAME, FILE, TABLE, hash_table(table), 0, NUMBER, FIRST_LINE),
        *(ASCII, len(name), ASCII, len(file), len(table), 0, 0),
    )
    sent = name[:256] + file
    record = header + sent.encode() + (table if len(table) <= 1024 else b"")
    names = CodeNames(lines=True)
    known = SimpleNamespace(version=VERSION, process=now)
    names.add(record, {1: cast("Any", known)})
    return names


def locations(*lines: int) -> bytes:
    """A table of one code unit for each line, by its distance from the last (0 to 2)."""
    return b"".join(bytes((0x80 | (10 + line) << 3, 0, 0)) for line in lines)


SHORT, LONG = locations(1, 1, 1), locations(*[1] * 1000)


@pytest.mark.parametrize("table", [SHORT, LONG], ids=["short", "long"])
def test_lines_are_those_of_the_table_that_was_met(table: bytes) -> None:
    same = names_of("spin", table, now=Process("spin", table))
    frame = same.frame(TAG | NUMBER << CODE_SHIFT | INSTRUCTION)
    assert (frame.name, frame.file, frame.line) == ("spin", "file.py", FIRST_LINE + 3)


def test_a_table_that_came_with_the_name_is_not_read() -> None:
    gone = names_of("spin", SHORT, now=Process("other", locations(2, 2, 2)))
    assert gone.frame(TAG | NUMBER << CODE_SHIFT | INSTRUCTION).line == FIRST_LINE + 3


@pytest.mark.parametrize("at", [0, 1500, 2999], ids=["first", "middle", "last"])
def test_lines_of_a_long_table_that_changed_are_left_out(at: int) -> None:
    changed = bytearray(LONG)
    changed[at] ^= 1
    names = names_of("spin", LONG, now=Process("spin", bytes(changed)))
    frame = names.frame(TAG | NUMBER << CODE_SHIFT | INSTRUCTION)
    assert (frame.name, frame.line) == ("spin", 0)


def test_a_long_name_is_read_where_it_is_still_the_same() -> None:
    name = "spin" * 100
    word = TAG | NUMBER << CODE_SHIFT
    assert names_of(name, SHORT, now=Process(name, SHORT)).frame(word).name == name
    other = names_of(name, SHORT, now=Process("fall" * 100, SHORT))
    assert other.frame(word).name == f"{name[:256]}..."
