"""What another user's process holds cannot make reading it cost more than a little."""

from __future__ import annotations

import struct
import time

import pytest

from purebpf.runtimes.cpython import tasks
from purebpf.runtimes.cpython.code_objects import CodeObjects
from purebpf.runtimes.cpython.frames import read_frames
from purebpf.runtimes.cpython.layouts import LAYOUTS
from purebpf.runtimes.cpython.lines import LineTable
from purebpf.runtimes.cpython.runtime_file import read_runtime_file
from purebpf.runtimes.cpython.task_layouts import TASK_LAYOUTS
from purebpf.runtimes.cpython.threads import read_interpreters
from purebpf.runtimes.loop_code import cold_part
from purebpf.runtimes.memory import CachedMemory
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage
from tests.support.builders.hollow_file import HollowFile, Part

_LAYOUT = LAYOUTS[3, 12]
_INTERPRETERS, _THREADS = 0x1000_0000, 0x8000_0000
_APART = 0x1000
_PAGE = 4096
_SYMBOL = struct.Struct("<IBBHQQ")


def endless(address: int, size: int) -> bytes:
    """Memory with a list of interpreters without end, which share an endless list of threads."""
    page = bytearray(_PAGE)
    at = address & -_APART
    if at < _INTERPRETERS:
        struct.pack_into("<Q", page, _LAYOUT.interpreters, _INTERPRETERS)
    elif at < _THREADS:
        struct.pack_into("<Q", page, _LAYOUT.interpreter_next, at + _APART)
        struct.pack_into("<Q", page, _LAYOUT.threads, _THREADS)
    else:
        struct.pack_into("<Q", page, _LAYOUT.thread_next, at + _APART)
        struct.pack_into("<Q", page, _LAYOUT.thread_id, at)
    return bytes(page[address - at :][:size])


def test_lists_of_lists_of_threads_end() -> None:
    reads = 0

    def read(address: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        return endless(address, size)

    began = time.thread_time()
    interpreters = read_interpreters(_LAYOUT, CachedMemory(read), _PAGE)
    assert sum(len(interpreter.threads) for interpreter in interpreters) <= 1 << 16
    assert reads < 1 << 18
    assert time.thread_time() - began < 10


def test_a_thread_belongs_to_one_interpreter() -> None:
    interpreters = read_interpreters(_LAYOUT, CachedMemory(endless), _PAGE)
    addresses = [thread.address for shown in interpreters for thread in shown.threads]
    assert len(addresses) == len(set(addresses))


def test_pages_that_are_kept_are_few() -> None:
    memory = CachedMemory(lambda _, size: bytes(size))
    for page in range(1, 40_000):
        memory.number(page * _PAGE)
    assert memory.kept_bytes <= 64 << 20


def test_a_look_reads_so_much_and_no_more() -> None:
    """Also where all of it is in the pages that were read: time is spent all the same."""
    memory = CachedMemory(endless, most_reads=1000)
    codes = CodeObjects((3, 12), _LAYOUT, memory)
    for _ in range(1000):
        memory.number(_THREADS)
    stack = read_frames((3, 12), _LAYOUT, memory, codes, _THREADS)
    assert stack.problem == "the thread state cannot be read"


def python_file(symbols: int, name: bytes = b"_PyEval_EvalFrameDefault") -> ElfImage:
    strings = b"\0_PyRuntime\0" + name + b"\0"
    table = _SYMBOL.pack(1, 0x11, 0, 1, 0x4000, 8)
    table += b"".join(
        _SYMBOL.pack(12, 0x12, 0, 1, 0x1000 + number, 16) for number in range(symbols)
    )
    file = HollowFile(
        Part(".symtab", table, kind=2, link=".strtab", entry_size=24), Part(".strtab", strings)
    )
    return ElfImage(file.read, file.size, "libpython3.12.so")


def test_parts_of_the_loop_without_number_are_not_kept() -> None:
    """Each address of a sample is compared with all of them."""
    image = python_file(100_000)
    began = time.thread_time()
    file = read_runtime_file(image)
    assert file is not None
    assert time.thread_time() - began < 5
    assert len(file.loop) <= 16


def test_jumps_without_number_are_not_followed() -> None:
    asked = []

    def function(address: int) -> tuple[int, int]:
        asked.append(address)
        return address, address + 1

    code = b"\x0f\x84\x00\x00\x00\x10" * 100_000
    cold_part(code, CodeRange(0x1000, 0x1000 + len(code)), function)
    assert len(asked) <= 10_000


def test_a_part_that_many_jumps_lead_to_is_looked_up_once() -> None:
    asked = []

    def function(address: int) -> tuple[int, int]:
        asked.append(address)
        return 0x1000_0000, 0x2000_0000

    code = b"\x0f\x84\x00\x00\x00\x10" * 1000
    loop = CodeRange(0x1000, 0x1000 + len(code))
    assert cold_part(code, loop, function) == (0x1000_0000, 0x2000_0000)
    assert len(asked) == 1


def test_a_table_of_lines_is_read_once() -> None:
    table = b"\x68\x02" * (1 << 17)  # one line on, every two bytes: the longest that is taken
    lines = LineTable((3, 12), table, 1)
    assert lines.at(0) == 2
    began = time.thread_time()
    for offset in range(0, 1 << 18, 64):
        lines.at(offset)
    assert time.thread_time() - began < 1


def test_tasks_that_all_wait_for_each_other_are_counted_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = CachedMemory(endless)
    layouts = _LAYOUT, TASK_LAYOUTS[3, 14]
    reader = tasks._Reader((3, 14), layouts, memory, CodeObjects((3, 14), _LAYOUT, memory))
    asked = 0

    def awaited_by(_: int) -> list[int]:
        nonlocal asked
        asked += 1
        return list(range(1, 3001))

    monkeypatch.setattr(reader, "_awaited_by", awaited_by)
    many = [tasks.Task(number, "", (), False, (), "", "") for number in range(1, 3001)]
    began = time.thread_time()
    waits = reader.with_awaiters(many)
    assert sum(len(task.waits_for) for task in waits) == 100_000
    assert time.thread_time() - began < 10


def test_futures_without_number_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = CachedMemory(endless)
    layouts = _LAYOUT, TASK_LAYOUTS[3, 14]
    reader = tasks._Reader((3, 14), layouts, memory, CodeObjects((3, 14), _LAYOUT, memory))
    asked: list[int] = []

    def awaited_by(address: int) -> list[int]:
        asked.append(address)
        return list(range(address << 16, (address << 16) + 65_536))

    monkeypatch.setattr(reader, "_awaited_by", awaited_by)
    assert reader._awaiters([1], {1}) == set()
    assert len(asked) <= 8 * 10_000
