"""The table against the rule, spelt out symbol by symbol; and what of a file is read for it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import VirtualOffset
from tests.unit.symbols.symbol_file import GLOBAL, LOCAL, WEAK, Sym, symbol_file

_END = 0x3000  # of .text
_SYMBOLS = st.tuples(
    st.text("_ab", min_size=1, max_size=4),
    st.integers(0x1000, 0x1020),
    st.one_of(st.just(0), st.integers(1, 0x18)),
    st.sampled_from([LOCAL, GLOBAL, WEAK]),
).map(lambda fields: Sym(*fields))


def _preference(symbol: Sym) -> tuple[object, ...]:
    underscores = len(symbol.name) - len(symbol.name.lstrip("_"))
    is_strong, is_global = symbol.bind != WEAK, symbol.bind == GLOBAL
    return (symbol.size > 0, is_strong, is_global, -underscores, len(symbol.name))


def _expected(symbols: list[Sym], address: int) -> set[tuple[str, int]]:
    """The names that may be given; more than one where the rule does not choose."""
    covering = []
    for symbol in symbols:
        end = symbol.value + symbol.size
        if not symbol.size:
            is_inside = any(s.value <= symbol.value < s.value + s.size for s in symbols)
            behind = [s.value for s in symbols if s.value > symbol.value]
            end = 0 if is_inside else min([*behind, _END])
        if symbol.value <= address < end:
            covering.append(symbol)
    last = max((symbol.value for symbol in covering), default=0)
    nearest = [symbol for symbol in covering if symbol.value == last]
    best = max(map(_preference, nearest), default=())
    return {(s.name, address - s.value) for s in nearest if _preference(s) == best}


@settings(max_examples=200, deadline=None)
@given(st.lists(_SYMBOLS, min_size=1, max_size=12))
def test_every_address_of_random_symbols(symbols):
    table = read_symbols(ElfImage.of_bytes(symbol_file(*symbols)))
    for address in range(0xFFE, 0x1040):
        expected = _expected(symbols, address)
        found = table.find(VirtualOffset(address))
        assert found in expected if expected else found is None, hex(address)


@settings(max_examples=200, deadline=None)
@given(st.lists(_SYMBOLS, min_size=1, max_size=12))
def test_all_addresses_of_a_span_have_the_same_function(symbols):
    table = read_symbols(ElfImage.of_bytes(symbol_file(*symbols)))
    for address in range(0xFFE, 0x1040):
        row = table.row(address)
        start, end = table.span(address, row)
        assert start <= address < end
        assert {table.row(other) for other in range(start, min(end, 0x1048))} == {row}, hex(address)


def test_an_outer_function_is_found_behind_thousands_of_inner_ones():
    inner = [Sym(f"inner{at}", 0x1000 + at, 1, LOCAL) for at in range(1, 5000) if at % 3]
    symbols = [Sym("outer", 0x1000, 0x1F00), *inner]
    table = read_symbols(ElfImage.of_bytes(symbol_file(*symbols)))
    assert table.find(VirtualOffset(0x1000 + 4998)) == ("outer", 4998)
    assert table.find(VirtualOffset(0x1000 + 4999)) == ("inner4999", 0)
    assert table.find(VirtualOffset(0x2F00)) is None


def test_what_is_between_functions_belongs_to_those_around_it():
    """Gaps behind 2,003 functions, of which each 97th reaches over the next 50, in any order."""
    sizes = [16 * 50 + 4 if number % 97 == 0 else 8 for number in range(2003)]
    symbols = [Sym(f"f{number}", 0x1000 + 16 * number, size) for number, size in enumerate(sizes)]
    table = read_symbols(ElfImage.of_bytes(symbol_file(*symbols)))
    for number in [*range(2002, -1, -1), *range(0, 2003, 7)]:
        gap = 0x1000 + 16 * number + 9
        around = [at for at in range(number + 1) if 0x1000 + 16 * at + sizes[at] > gap]
        expected = (f"f{around[-1]}", 9 + 16 * (number - around[-1])) if around else None
        assert table.find(VirtualOffset(gap)) == expected, number


def test_only_headers_symbols_and_their_names_are_read():
    count = 100_000
    data = symbol_file(*(Sym(f"f{at}", 0x1000 + at, 1) for at in range(count)))
    image = ElfImage.of_bytes(data)
    sections = [image.section(name) for name in (".symtab", ".strtab")]
    reads: list[tuple[int, int]] = []

    def read(offset: int, size: int) -> bytes:
        reads.append((offset, size))
        return data[offset : offset + size]

    table = read_symbols(ElfImage(read, len(data)))
    assert table.find(VirtualOffset(0x1000 + 99)) == ("f99", 0)
    tables = sum(section.size for section in sections if section)
    assert sum(size for _, size in reads) < tables + 4096
    of_symbols = [size for offset, size in reads if offset < sections[1].offset and size > 4096]
    assert len(of_symbols) > 2
    assert max(of_symbols) <= 1 << 20
