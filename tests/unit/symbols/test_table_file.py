"""A table that is written and read back gives the same answers, and damage is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import VirtualOffset
from purebpf.symbols.symbol_table import SymbolTable
from purebpf.symbols.table_file import open_table, pieces
from tests.unit.symbols.symbol_file import GLOBAL, LOCAL, NOTYPE, Sym, symbol_file

pytestmark = pytest.mark.slow


def _table(count: int) -> SymbolTable:
    inner = [Sym(f"f{at}" * (at % 40), 0x1000 + at, at % 3, LOCAL) for at in range(1, count)]
    symbols = [Sym("outer", 0x1000, 0x1800), Sym("label", 0x2F00, 0, GLOBAL, NOTYPE), *inner]
    return read_symbols(ElfImage.of_bytes(symbol_file(*symbols)))


def _opened(data: bytes) -> SymbolTable:
    return open_table(lambda offset, size: data[offset : offset + size], len(data), "cached")


@pytest.mark.parametrize("count", [1, 700, 3000])
def test_the_same_answers_from_a_file(count):
    table = _table(count)
    again = _opened(b"".join(pieces(table)))
    assert len(again) == len(table)
    for address in range(0xFFE, 0x3002):
        assert again.find(VirtualOffset(address)) == table.find(VirtualOffset(address))


def test_little_of_it_is_read_for_one_question():
    table = _table(6000)
    data = b"".join(pieces(table))
    reads: list[int] = []

    def read(offset: int, size: int) -> bytes:
        reads.append(size)
        return data[offset : offset + size]

    assert open_table(read, len(data), "cached").find(VirtualOffset(0x1100)) == ("f256" * 16, 0)
    assert max(reads) <= 1 << 13
    assert sum(reads) < len(data) // 4


@given(st.integers(0, 5000))
def test_a_file_that_is_cut_short_is_not_a_table(size):
    data = b"".join(pieces(_table(300)))
    cut = data[: size % len(data)]
    with pytest.raises(FormatError):
        _opened(cut)


def test_a_header_with_any_byte_changed_is_none():
    data = b"".join(pieces(_table(20)))
    for at in (*range(17), *range(24, 48)):
        changed = bytearray(data)
        changed[at] ^= 0x10
        with pytest.raises(FormatError):
            _opened(bytes(changed))


def test_a_file_that_shrinks_during_a_read_is_noticed():
    data = bytearray(b"".join(pieces(_table(3000))))
    table = open_table(
        lambda offset, size: bytes(data[offset : offset + size]), len(data), "cached"
    )
    del data[100:]
    with pytest.raises(FormatError, match="truncated"):
        table.find(VirtualOffset(0x1100))


@given(st.data())
def test_damage_behind_the_header_is_a_wrong_name_or_an_error_and_nothing_else(data):
    contents = bytearray(b"".join(pieces(_table(30))))
    for _ in range(data.draw(st.integers(1, 8))):
        contents[data.draw(st.integers(48, len(contents) - 1))] = data.draw(st.integers(0, 255))
    try:
        table = _opened(bytes(contents))
        for address in (0x1000, 0x1005, 0x1100, 0x2F00, 0x3000):
            table.find(VirtualOffset(address))
    except FormatError:
        pass
