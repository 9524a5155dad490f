"""Small files that once cost a profile minutes or gigabytes: what they cost now is bounded."""

from __future__ import annotations

import resource
import struct
import time
from contextlib import contextmanager

import pytest

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import SHT_NOTE, ElfImage
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import VirtualOffset
from purebpf.symbols.go_table import go_functions
from purebpf.symbols.longest_name import LONGEST_NAME
from purebpf.symbols.perf_map import PerfMap
from purebpf.symbols.plt import plt_symbols
from tests.support.builders.hollow_file import HollowFile, Part

HOLE = 1 << 28
TEXT = 0x1000


@contextmanager
def within(seconds: float):
    """Fails when the body takes more processor time than that."""
    before = time.process_time()
    yield
    taken = time.process_time() - before
    assert taken < seconds, f"{taken:.1f} s"


@pytest.fixture(autouse=True)
def memory_limit():
    """No test of this file may take more than a gigabyte beyond what is in use."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    old = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), old[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, old)


def symbol(name, value, size=1):
    return struct.pack("<IBBHQQ", name, 0x12, 0, 1, value, size)


def with_symbols(rows, strings):
    return HollowFile(
        Part(".text", flags=6, address=TEXT, size=0x10000, kind=8),
        Part(".symtab", data=b"".join(rows), kind=2, link=".strtab", entry_size=24),
        Part(".strtab", data=strings, kind=3),
    )


def test_build_id_in_300_note_sections_over_a_hole():
    notes = [Part(f".note{n}", kind=SHT_NOTE, offset=1 << 20, size=HOLE) for n in range(300)]
    file = HollowFile(*notes)
    image = ElfImage(file.read, file.size)
    with within(2):
        assert [image.build_id for _ in range(1000)] == [""] * 1000
    assert file.bytes_read < 4 << 20


def test_one_string_table_without_an_end_names_every_symbol():
    file = with_symbols([symbol(n, TEXT + n) for n in range(2000)], b"x" * (20 << 20))
    with within(5):
        table = read_symbols(ElfImage(file.read, file.size))
        names = [table.find(VirtualOffset(TEXT + n))[0] for n in range(2000)]
    assert {len(name) for name in names} == {LONGEST_NAME + 1}


def test_20000_symbols_at_one_address():
    file = with_symbols([symbol(n, TEXT, 64) for n in range(20_000)], b"x" * (5 << 20))
    with within(5):
        table = read_symbols(ElfImage(file.read, file.size))
        assert all(table.find(VirtualOffset(TEXT + n)) for n in range(64))


def test_section_names_without_an_end():
    parts = [Part("x", kind=1) for _ in range(20_000)]
    file = HollowFile(*parts, names=b"x" * (16 << 20))
    with within(5):
        image = ElfImage(file.read, file.size)
    assert len(image.sections[5].name) == LONGEST_NAME + 1


def test_more_segments_than_a_program_may_have():
    file = HollowFile(segments=2000)
    with pytest.raises(FormatError, match="program headers: 2000 of 56 bytes each"):
        ElfImage(file.read, file.size)


def test_stubs_over_a_hole():
    file = HollowFile(
        Part(".plt", flags=6, address=TEXT, offset=1 << 20, size=HOLE - 1),
        Part(".dynsym", kind=11, offset=1 << 20, size=1 << 20, link=".dynstr"),
        Part(".dynstr", kind=3, data=b"\0abc\0"),
        Part(".rela.plt", kind=4, data=struct.pack("<QQq", 0x5000, 7 | 1 << 32, 0)),
    )
    with within(3):
        assert list(plt_symbols(ElfImage(file.read, file.size))) == []


def test_go_functions_that_share_one_endless_name():
    count = 1 << 17
    names_at, functions_at = 64 + 8, 1 << 16
    rows = b"".join(struct.pack("<II", 4 * n, 8 * count) for n in range(count))
    functions = rows + struct.pack("<I", 4 * count) + bytes(64)
    header = struct.pack("<IHBB8Q", 0xFFFFFFF1, 0, 1, 8, count, 0, TEXT, 72, 0, 0, 0, functions_at)
    data = header + b"x" * (functions_at - names_at) + functions
    file = HollowFile(
        Part(".text", flags=6, address=TEXT, size=0x1000, kind=8),
        Part(".gopclntab", data=data),
    )
    image = ElfImage(file.read, file.size)
    assert len(next(go_functions(image))[2]) == LONGEST_NAME + 1
    with within(5):
        assert read_symbols(image).nbytes < 128 << 20


def test_perf_map_of_one_line_of_50_megabytes():
    table = PerfMap(b"1000 100000 " + b"x" * (50 << 20) + b"\n")
    with within(2):
        names = [table.find(0x1000 + 16 * n)[0] for n in range(10_000)]
    assert {len(name) for name in names} == {LONGEST_NAME + 1}
