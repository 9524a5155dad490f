"""Which name an address gets, on files made for each rule and on small real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.symbols.elf_image import ElfImage, virtual_offset
from purebpf.symbols.elf_symbols import read_symbols
from purebpf.symbols.frame import FileOffset, VirtualOffset
from tests.unit.symbols.symbol_file import (
    DATA,
    GLOBAL,
    IFUNC,
    LOCAL,
    NOTYPE,
    OBJECT,
    WEAK,
    Sym,
    symbol_file,
)

_DATA = Path(__file__).parents[2] / "data" / "symbols"


def _image(name: str) -> ElfImage:
    return ElfImage.of_bytes((_DATA / name).read_bytes(), name)


def _names(*symbols: Sym, at: tuple[int, ...], **options: object) -> list[tuple[str, int] | None]:
    table = read_symbols(ElfImage.of_bytes(symbol_file(*symbols, **options)))
    return [table.find(VirtualOffset(offset)) for offset in at]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bits", [32, 64])
def test_both_classes_and_byte_orders(bits, order):
    found = _names(
        Sym("one", 0x1000, 0x10),
        Sym("two", 0x1010, 0x20, LOCAL),
        at=(0xFFF, 0x1000, 0x100F, 0x1010, 0x102F, 0x1030),
        bits=bits,
        order=order,
    )
    assert found == [None, ("one", 0), ("one", 15), ("two", 0), ("two", 31), None]


def test_a_sized_function_ends_at_its_size_and_an_unsized_one_at_the_next():
    found = _names(
        Sym("sized", 0x1000, 8),
        Sym("unsized", 0x1020, 0),
        Sym("next", 0x1030, 4),
        Sym("last", 0x1040, 0),
        at=(0x1007, 0x1008, 0x1020, 0x102F, 0x1033, 0x1034, 0x2FFF, 0x3000),
    )
    assert found == [
        ("sized", 7), None, ("unsized", 0), ("unsized", 15), ("next", 3), None,
        ("last", 0x1FBF), None,
    ]  # fmt: skip


def test_a_nested_function_hides_the_outer_only_where_it_is():
    found = _names(
        Sym("outer", 0x1000, 0x100), Sym("inner", 0x1020, 0x10), at=(0x1010, 0x1020, 0x1030)
    )
    assert found == [("outer", 0x10), ("inner", 0), ("outer", 0x30)]


def test_a_label_inside_a_sized_function_does_not_count():
    label = Sym("label", 0x1008, 0, GLOBAL, NOTYPE)
    found = _names(Sym("f", 0x1000, 0x10), label, at=(0x1008, 0x1010))
    assert found == [("f", 8), None]


@pytest.mark.parametrize(
    ("symbols", "best"),
    [
        ([("longest_of_all", 0, GLOBAL), ("sized", 16, LOCAL)], "sized"),
        ([("weak", 16, WEAK), ("l", 16, LOCAL)], "l"),
        ([("local", 16, LOCAL), ("g", 16, GLOBAL)], "g"),
        ([("__longer", 16, GLOBAL), ("_l", 16, GLOBAL)], "_l"),
        ([("short", 16, GLOBAL), ("longer", 16, GLOBAL)], "longer"),
        ([("versioned@@LONG_VERSION", 16, GLOBAL), ("unversioned", 16, GLOBAL)], "unversioned"),
    ],
)
@pytest.mark.parametrize("turn", [1, -1])
def test_which_of_two_names_of_one_address(symbols, best, turn):
    rows = [Sym(name, 0x1000, size, bind) for name, size, bind in symbols][::turn]
    assert _names(*rows, at=(0x1000, 0x100F)) == [(best, 0), (best, 15)]


def test_a_better_name_that_ends_earlier_leaves_the_rest_to_the_other():
    found = _names(
        Sym("good", 0x1000, 4), Sym("weak", 0x1000, 8, WEAK), at=(0x1003, 0x1004, 0x1008)
    )
    assert found == [("good", 3), ("weak", 4), None]


def test_what_is_not_a_function_has_no_name():
    at = tuple(range(0x1000, 0x1080, 0x10))
    found = _names(
        Sym("variable", 0x1000, 16, type=OBJECT),
        Sym("imported", 0x1010, 16, section=0),
        Sym("", 0x1020, 16),
        Sym("$x", 0x1030, 0, LOCAL, NOTYPE),
        Sym(".L1", 0x1040, 0, LOCAL, NOTYPE),
        Sym("hidden", 0x1050, 0, GLOBAL, NOTYPE, other=2),
        Sym("data_label", 0x1060, 0, GLOBAL, NOTYPE, DATA),
        Sym("resolver", 0x1070, 16, type=IFUNC),
        at=at,
    )
    assert found == [None] * 7 + [("resolver", 0)]


def test_bit_zero_of_an_arm_function_says_thumb():
    assert _names(Sym("t", 0x1001, 8), at=(0x1000, 0x1008), bits=32, machine=40) == [("t", 0), None]


def test_a_relocatable_file_has_no_addresses():
    assert _names(Sym("f", 0x1000, 8), at=(0x1000,), kind=1) == [None]


@pytest.mark.parametrize(
    ("file", "label", "hidden", "exported", "start"),
    [
        ("tiny-static", 0x400110, 0x400120, 0x400124, 0x40012D),
        ("tiny.so", 0x380, 0x390, 0x394, 0x3BC),
    ],
)
def test_every_byte_of_a_small_program(file, label, hidden, exported, start):
    table = read_symbols(_image(file))
    assert table.find(VirtualOffset(label)) == ("label", 0)
    assert table.find(VirtualOffset(hidden - 1)) == ("label", 15)
    assert [table.find(VirtualOffset(hidden + i)) for i in range(4)] == [
        ("hidden", i) for i in range(4)
    ]
    assert [table.find(VirtualOffset(exported + i)) for i in range(9)] == [
        ("exported", i) for i in range(9)
    ]
    assert table.find(VirtualOffset(start)) == ("_start", 0)


def test_a_32_bit_program():
    image = _image("tiny-i386")
    assert not image.is64
    table = read_symbols(image)
    names = {
        name for at in range(0x08048000, 0x08049000) if (name := table.find(VirtualOffset(at)))
    }
    assert {name for name, _ in names} == {"label", "hidden", "exported", "_start"}


def test_stubs_of_the_procedure_linkage_table():
    image = _image("tiny.so")
    plt = image.section(".plt")
    assert plt is not None
    table = read_symbols(image)
    assert table.find(VirtualOffset(plt.address)) is None  # the resolver's entry
    assert table.find(VirtualOffset(plt.address + 16)) == ("exported@plt", 0)
    assert table.find(VirtualOffset(plt.address + 31)) == ("exported@plt", 15)
    assert table.find(VirtualOffset(plt.address + 32)) == ("imported@plt", 0)


def test_a_stripped_file_names_what_it_exports():
    table = read_symbols(_image("tiny-stripped.so"))
    assert table.find(VirtualOffset(0x394)) == ("exported", 0)
    assert table.find(VirtualOffset(0x392)) == ("label", 0x12)  # hidden is gone, label has no size


@pytest.mark.parametrize("debug", [None, "tiny.debug"])
def test_the_rest_comes_from_gnu_debugdata_or_a_debug_file(debug):
    image = _image("tiny-stripped.so" if debug else "tiny-mini.so")
    table = read_symbols(image, _image(debug) if debug else None)
    assert table.find(VirtualOffset(0x392)) == ("hidden", 2)
    assert table.find(VirtualOffset(0x394)) == ("exported", 0)
    assert table.find(VirtualOffset(image.section(".plt").address + 32)) == ("imported@plt", 0)


def test_build_id_and_debug_link():
    assert _image("tiny.so").build_id == _image("tiny.debug").build_id == "0102030405060708090a"
    assert _image("tiny-linked.so").build_id == ""
    assert _image("tiny.so").debug_link is None
    name, crc = _image("tiny-linked.so").debug_link
    assert name == "tiny.debug"
    import binascii

    assert crc == binascii.crc32((_DATA / "tiny.debug").read_bytes())


def test_file_offsets_become_virtual_ones_through_the_segments():
    static = _image("tiny-static")
    assert virtual_offset(static.segments, FileOffset(0x120)) == 0x400120
    assert virtual_offset(_image("tiny.so").segments, FileOffset(0x390)) == 0x390
    built = ElfImage.of_bytes(symbol_file())
    assert virtual_offset(built.segments, FileOffset(0x1FFF)) == 0x2FFF
    assert virtual_offset(built.segments, FileOffset(0x2000)) is None
