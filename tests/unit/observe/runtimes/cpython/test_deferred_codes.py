"""Code objects that user space reads for BPF: only those that ran at the sample."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest

from purebpf.observe.runtimes.cpython.code_names import CodeNames
from purebpf.observe.runtimes.cpython.deferred_codes import Deferred, read_proven
from purebpf.runtimes.cpython.code_objects import Code
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.cpython.lines import LineTable
from purebpf.symbols.python_words import CODE_SHIFT, TAG

VERSION = (3, 12)
LAYOUT = LAYOUTS[VERSION]
CODE, TYPE, TYPE_NAME, NAME, FILE, TABLE = (0x10000 * at for at in range(1, 7))
ASCII = 1 << 2 | 1 << 5 | 1 << 6
NUMBER = 6


def string(text: str) -> bytes:
    header = bytearray(LAYOUT.ascii_size)
    struct.pack_into("<Q", header, LAYOUT.string_length, len(text))
    struct.pack_into("<I", header, LAYOUT.string_state, ASCII)
    return bytes(header) + text.encode()


class Process:
    """Has a code object; `later` is its count of references once its name was read."""

    is_free_threaded = False
    layout = LAYOUT

    def __init__(self, references: int = 1, later: int | None = None, data: bool = False) -> None:
        self.later = references if later is None else later
        self.data = data
        code = bytearray(LAYOUT.code_size)
        struct.pack_into("<QQ", code, 0, references, TYPE)
        struct.pack_into("<Q", code, LAYOUT.code_qualname, NAME)
        struct.pack_into("<Q", code, LAYOUT.code_filename, FILE)
        struct.pack_into("<Q", code, LAYOUT.code_lines, TABLE)
        struct.pack_into("<I", code, LAYOUT.code_version, 50)
        kind = bytearray(LAYOUT.type_name + 8)
        struct.pack_into("<Q", kind, LAYOUT.type_name, TYPE_NAME)
        self.pieces = {
            CODE: code,
            TYPE: kind,
            TYPE_NAME: b"code\0",
            NAME: string("spin"),
            FILE: string("file.py"),
            TABLE: bytes(LAYOUT.bytes_data),
        }

    def is_in_data(self, address: int) -> bool:
        return self.data and address == CODE

    def read(self, address: int, size: int) -> bytes:
        for start, content in self.pieces.items():
            if start <= address < start + len(content):
                piece = bytes(content[address - start :][:size])
                if start == FILE:  # the last that is read, but for the table
                    struct.pack_into("<Q", cast("bytearray", self.pieces[CODE]), 0, self.later)
                return piece
        return b""


def read(process: Process, least: int, most: int) -> str | None:
    interpreter = SimpleNamespace(version=VERSION, process=process)
    code = read_proven(cast("Any", interpreter), Deferred(CODE, least, most))
    return code and code.name


@pytest.mark.parametrize(("least", "most", "name"), [
    (1, 50, "spin"), (50, 50, "spin"), (1, 49, None), (51, 51, None), (0, 0, None), (1, 0, None),
])  # fmt: skip
def test_the_version_tells_whether_it_is_the_same(least: int, most: int, name: str | None) -> None:
    assert read(Process(), least, most) == name


@pytest.mark.parametrize("references", [0, 0x7F12_3456_7890, 0x7F12_0000_0000])
def test_a_code_object_that_was_freed_has_no_name(references: int) -> None:
    assert read(Process(references), 1, 50) is None
    assert read(Process(later=references), 1, 50) is None


@pytest.mark.parametrize("references", [1, 0xFFFFFFFF, 3 << 30, 0x80 << 48 | 3 << 30])
def test_one_that_is_never_freed_is_alive(references: int) -> None:
    assert read(Process(references), 1, 50) == "spin"


def test_code_of_the_interpreters_file_needs_no_version() -> None:
    assert read(Process(data=True), 0, 0) == "spin"


def code(name: str) -> Code:
    return Code(name, "file.py", 1, LineTable(VERSION, b"", 1), 0)


def test_a_number_has_one_name_or_none() -> None:
    names = CodeNames(lines=False)
    word = TAG | NUMBER << CODE_SHIFT
    names.take(NUMBER, code("spin"), VERSION, 2)
    names.take(NUMBER, code("spin"), VERSION, 1)
    assert names.frame(word).name == "spin"
    assert names.unread == 0
    names.take(NUMBER, None, VERSION, 1)  # it may have been gone at this sample
    assert names.frame(word).name == ""
    assert names.unread == 4
    names.take(NUMBER, code("spin"), VERSION, 1)
    assert names.frame(word).name == ""
    assert names.unread == 5


def test_records_of_one_number_are_read_once() -> None:
    names = CodeNames(lines=False)
    record = struct.pack("<6Q9I4x", 1, 0, 0, 0, 0, CODE, NUMBER, 0, 0, 0, 0, 0, 0, 1, 50)
    for _ in range(3):
        names.add(record, {})
    assert names.take_deferred() == {1: {NUMBER: (Deferred(CODE, 1, 50), 3)}}
    assert not names.take_deferred()
