"""Whatever the bytes: symbols or a FormatError, soon, and nothing else."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage, virtual_offset
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import FileOffset, VirtualOffset
from tests.unit.symbols.symbol_file import Sym, symbol_file

pytestmark = pytest.mark.slow


_DATA = Path(__file__).parents[2] / "data" / "symbols"
_FILES = [(_DATA / name).read_bytes() for name in ("tiny.so", "tiny-mini.so", "tiny-i386")]


def _all_of_it(data: bytes) -> None:
    """Everything the symboliser asks of a file."""
    try:
        image = ElfImage.of_bytes(data)
        assert isinstance(image.build_id, str)
        assert image.debug_link is None or image.debug_link[0]
        table = read_symbols(image)
        for offset in (0, 0x394, 1 << 40):
            place = virtual_offset(image.segments, FileOffset(offset))
            found = table.find(VirtualOffset(offset if place is None else place))
            assert found is None or found[1] >= 0
    except FormatError:
        pass


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_are_a_format_error_at_most(data):
    _all_of_it(data)
    _all_of_it(b"\x7fELF" + data)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(_FILES),
    st.lists(st.tuples(st.integers(0, 1 << 13), st.binary(min_size=1, max_size=8)), max_size=6),
)
def test_real_files_with_bytes_overwritten(data, changes):
    image = bytearray(data)
    for offset, new in changes:
        offset %= len(image)
        image[offset : offset + len(new)] = new
    _all_of_it(bytes(image))


@pytest.mark.parametrize("data", _FILES, ids=["so", "mini", "i386"])
def test_headers_with_every_byte_at_its_extremes(data):
    headers = {*range(4, 64), *range(len(data) - 64, len(data))}
    for offset in headers:
        for value in (0, 0x7F, 0xFF):
            _all_of_it(data[:offset] + bytes([value]) + data[offset + 1 :])


@pytest.mark.parametrize("data", _FILES, ids=["so", "mini", "i386"])
def test_every_truncation_is_a_format_error_at_most(data):
    for size in range(0, len(data), 7):
        _all_of_it(data[:size])


def test_a_section_that_claims_more_than_the_file_is_read_to_its_end():
    data = bytearray(symbol_file(Sym("f", 0x1000, 8)))
    shoff = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, shoff + 3 * 64 + 32, 1 << 62)  # sh_size of .symtab
    assert read_symbols(ElfImage.of_bytes(bytes(data))).find(VirtualOffset(0x1000)) == ("f", 0)


def test_a_file_larger_than_any_real_table_is_not_read_whole():
    def read(offset: int, size: int) -> bytes:
        reads.append(size)
        return data[offset : offset + size].ljust(size, b"\0")

    reads: list[int] = []
    data = bytearray(symbol_file(Sym("f", 0x1000, 8)))
    shoff = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, shoff + 4 * 64 + 32, 1 << 40)  # sh_size of .strtab
    with pytest.raises(FormatError, match="more than plausible"):
        read_symbols(ElfImage(read, 1 << 50))
    assert max(reads) < 1 << 20


def test_unpacking_stops_early():
    bomb = lzma.compress(bytes(1 << 28), preset=1)
    data = (_DATA / "tiny-mini.so").read_bytes()
    section = ElfImage.of_bytes(data).section(".gnu_debugdata")
    there = struct.pack("<QQ", section.offset, section.size)
    assert data.count(there) == 1
    moved = data.replace(there, struct.pack("<QQ", len(data), len(bomb))) + bomb
    # 64 MiB of zeros, not 256
    with pytest.raises(FormatError, match="not an ELF file: wrong magic"):
        read_symbols(ElfImage.of_bytes(moved))


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_count_of_sections_that_does_not_fit_its_field(order):
    data = bytearray(symbol_file(Sym("f", 0x1000, 8), order=order))
    shoff = struct.unpack_from(f"{order}Q", data, 40)[0]
    (count, names) = struct.unpack_from(f"{order}HH", data, 60)
    struct.pack_into(f"{order}HH", data, 60, 0, 0xFFFF)
    struct.pack_into(f"{order}QI", data, shoff + 32, count, names)
    image = ElfImage.of_bytes(bytes(data))
    assert len(image.sections) == count
    assert image.section(".symtab") is not None
