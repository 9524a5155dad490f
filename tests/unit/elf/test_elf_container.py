"""What clang does not write: old, odd, and broken objects, put together byte by byte."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.elf import read_object
from purebpf.errors import FormatError, LinkError, PurebpfError
from purebpf.spec import Relocation, RelocationKind
from tests.support.builders import elf_builder as e
from tests.support.builders.elf_builder import ElfBuilder

pytestmark = pytest.mark.slow


DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("machine", [0, 247])
def test_a_smallest_object(order: str, machine: int) -> None:
    built = ElfBuilder(order, machine)
    built.program("main", "xdp", e.EXIT)
    spec = read_object(built.build())
    assert (spec.name, spec.source) == ("object", "bytes")
    assert spec.byteorder == {"<": "little", ">": "big"}[order]
    assert spec.programs["main"].type == 6
    assert spec.functions["main"].code == e.EXIT


def test_all_kinds_of_source_say_the_same() -> None:
    path = DATA / "elf_unlicensed.bpf.o"
    data = path.read_bytes()
    by_path = read_object(path)
    assert (by_path.name, by_path.source) == ("elf_unlicensed", str(path))
    assert read_object(str(path)) == by_path
    with path.open("rb") as file:
        assert read_object(file) == by_path
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        assert read_object(source).functions == by_path.functions


def test_a_file_of_a_package_in_a_zip_is_read(tmp_path: Path) -> None:
    path = DATA / "elf_unlicensed.bpf.o"
    archive = tmp_path / "tool.pyz"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(path, "tool/elf_unlicensed.bpf.o")
    spec = read_object(zipfile.Path(archive, "tool/elf_unlicensed.bpf.o"))
    assert (spec.name, spec.source) == ("elf_unlicensed", "elf_unlicensed.bpf.o")
    assert spec.functions == read_object(path).functions


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (b"BC\xc0\xde" + bytes(80), "LLVM bitcode, not an object; compile without -emit-llvm"),
        (b"; ModuleID = 'x.c'\n", "LLVM assembly, not an object"),
        (b"\x1f\x8b\x08" + bytes(80), "a gzip file; unpack it first"),
        (
            b"// Counts.\n#include <linux/bpf.h>\n",
            "C source, not an object; compile it with: clang",
        ),
        (b"hello, world\n", "not an ELF file"),
        (bytes(80), "not an ELF file"),
    ],
)
def test_what_is_not_an_object_yet_is_recognised(data: bytes, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_object(data)
    assert caught.value.problem.startswith(problem)


def test_c_source_says_the_command_that_compiles_it(tmp_path: Path) -> None:
    path = tmp_path / "count.bpf.c"
    path.write_text("struct event { int pid; };\n")
    with pytest.raises(FormatError, match=f" -c {path} -o {tmp_path}/count.bpf.o$"):
        read_object(path)
    with pytest.raises(FormatError, match=r"C source.* -c NAME.bpf.c -o NAME.bpf.o$"):
        read_object("#include <linux/bpf.h>\nint main;\n")


def test_a_pipe_is_read_to_its_end() -> None:
    data = (DATA / "elf_unlicensed.bpf.o").read_bytes()

    class Pipe(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(100 if size is None or size < 0 else min(size, 100))

    assert read_object(Pipe(data)) == read_object(data)


def test_names_are_made_of_what_the_kernel_allows(tmp_path: Path) -> None:
    path = tmp_path / "my-tool v2.bpf.o"
    path.write_bytes((DATA / "elf_unlicensed.bpf.o").read_bytes())
    assert read_object(path).name == "my_tool_v2"


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"", "not an ELF file"),
        (b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\x3e\0", "type ET_EXEC, not ET_REL"),
    ],
    ids=["zeros", "a kernel"],
)
def test_a_file_that_is_not_an_object_is_not_read_to_its_end(
    header: bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(header)
        file.truncate(1 << 30)
    for source in (path, path.open("rb", buffering=0)):
        with pytest.raises(FormatError, match=re.escape(problem)):
            read_object(source)
    assert not isinstance(source, Path)
    assert source.tell() == 64
    source.close()


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_object(tmp_path / "missing.bpf.o")


def test_relocations_of_dwarf_are_not_looked_at() -> None:
    """Of compressed sections, they count uncompressed bytes."""
    built = ElfBuilder()
    built.program("main", "xdp", e.EXIT)
    built.relocate(built.section(".debug_info", bytes(8)), (1000, 99, 1))
    assert read_object(built.build()).functions["main"].relocations == ()


def test_a_function_may_have_several_names() -> None:
    built = ElfBuilder()
    place = built.section("xdp", 3 * e.EXIT, flags=6)
    sizes = {"first": (0, 16), "alias": (0, 16), "second": (16, 0), "last": (32, 16)}
    for name, (start, size) in sizes.items():
        built.symbol(name, place, start, size)
    spec = read_object(built.build())
    assert {each.name: each.code for each in spec.functions.values()} == dict.fromkeys(
        sizes, e.EXIT
    )
    assert spec.programs.keys() == sizes.keys()


def test_names_may_be_long() -> None:
    name = "a" * 5000
    built = ElfBuilder()
    built.program(name, "xdp", e.EXIT)
    assert [*read_object(built.build()).programs] == [name]
    with pytest.raises(FormatError, match="no name of less than 65536 bytes"):
        read_object(_with(lambda b, m: b.symbol("b" * 65536, m), e.EXIT))
    with pytest.raises(FormatError, match="more than 16777216 bytes of names"):
        read_object(_with(_share_a_name, e.EXIT))


def _share_a_name(built: ElfBuilder, _: int) -> None:
    for _ in range(300):
        built.symbol("c" * 60000, 0, kind=e.NOTYPE)


def test_rela_keeps_what_is_added_in_the_table() -> None:
    built = ElfBuilder()
    text = built.section(".text", e.EXIT + e.EXIT, flags=e.EXECUTABLE)
    built.symbol("one", text, 0, 16, binding=e.LOCAL)
    built.symbol("two", text, 16, 16, binding=e.LOCAL)
    data = built.section(".data", bytes(32))
    places = [built.symbol("", number, kind=e.SECTION, binding=e.LOCAL) for number in (text, data)]
    main = built.program(code=e.CALL + e.LOAD + e.EXIT)
    built.relocate(main, (0, 10, places[0]), (8, 1, places[1]), addends=(16, 24))
    assert read_object(built.build()).functions["main"].relocations == (
        Relocation(0, RelocationKind.CALL, "two"),
        Relocation(8, RelocationKind.DATA, ".data", 24),
    )


def test_relocations_of_type_0_mean_nothing() -> None:
    built = ElfBuilder()
    main = built.program()
    built.relocate(main, (0, 0, 0), (1 << 40, 0, 99))
    assert read_object(built.build()).functions["main"].relocations == ()


def test_functions_of_old_compilers_have_neither_type_nor_size() -> None:
    built = ElfBuilder()
    text = built.section("socket", e.EXIT * 3, flags=e.EXECUTABLE)
    built.symbol("one", text, 0, 0, kind=e.NOTYPE)
    built.symbol("LBB0_1", text, 8, 0, kind=e.NOTYPE, binding=e.LOCAL)
    built.symbol("two", text, 16, 0, kind=e.NOTYPE)
    functions = read_object(built.build()).functions
    assert {name: len(f.code) for name, f in functions.items()} == {"one": 16, "two": 32}


def test_code_without_a_symbol_is_left_out() -> None:
    built = ElfBuilder()
    built.section("socket", e.EXIT, flags=e.EXECUTABLE)
    spec = read_object(built.build())
    assert (spec.functions, spec.programs) == ({}, {})


def test_a_call_into_the_same_section_needs_no_relocation() -> None:
    built = ElfBuilder()
    text = built.section("socket", b"\x85\x10" + bytes(2) + b"\2\0\0\0" + e.EXIT + e.EXIT, flags=6)
    built.symbol("main", text, 0, 24)
    built.symbol("helper", text, 24, 16, binding=e.LOCAL)
    assert read_object(built.build()).functions["main"].relocations == (
        Relocation(0, RelocationKind.CALL, "helper"),
    )


def test_a_called_function_of_an_unknown_section_is_not_a_program() -> None:
    built = ElfBuilder()
    own = built.section("own", e.EXIT * 2, flags=e.EXECUTABLE)
    called = built.symbol("called", own, 0, 16)
    built.symbol("lonely", own, 16, 16)
    main = built.program(code=e.CALL + e.EXIT)
    built.relocate(main, (0, 10, called))
    assert sorted(read_object(built.build()).programs) == ["lonely", "main"]


def test_the_license_ends_at_its_first_nul() -> None:
    built = ElfBuilder()
    built.section("license", b"GPL\0 and more")
    assert read_object(built.build()).license == "GPL"


def _with(change: Callable[[ElfBuilder, int], object], code: bytes = e.EXIT) -> bytes:
    built = ElfBuilder()
    change(built, built.program(code=code))
    return built.build()


def _undefined(built: ElfBuilder, main: int) -> None:
    built.relocate(main, (0, 1, built.symbol("missing", 0, kind=e.NOTYPE)))


def _common(built: ElfBuilder, main: int) -> None:
    built.relocate(main, (0, 1, built.symbol("shared", 0xFFF2, kind=e.OBJECT)))


def _into_debug_section(built: ElfBuilder, main: int) -> None:
    place = built.symbol("x", built.section(".debug_info", bytes(8)), kind=e.OBJECT)
    built.relocate(main, (0, 1, place))


def _static_map(built: ElfBuilder, main: int) -> None:
    place = built.symbol("", built.section(".elsewhere", bytes(32)), kind=e.SECTION, binding=0)
    built.relocate(main, (0, 1, place))


def _inside_function(built: ElfBuilder, main: int) -> None:
    built.relocate(main, (0, 1, built.symbol("label", main, 8, kind=e.NOTYPE)))


@pytest.mark.parametrize(
    ("change", "symbol", "problem"),
    [
        (_undefined, "missing", "neither defined here nor declared"),
        (_common, "shared", "common or absolute"),
        (_into_debug_section, "x", "in section .debug_info"),
        (_static_map, ".elsewhere", "in section .elsewhere"),
        (_inside_function, "label", "not where a function starts"),
    ],
)
def test_references_that_lead_nowhere(change, symbol: str, problem: str) -> None:
    with pytest.raises(LinkError, match=problem) as caught:
        read_object(_with(change, code=e.LOAD + e.EXIT))
    assert caught.value.symbol == symbol


BROKEN: dict[str, tuple[Callable[[ElfBuilder, int], object], bytes, str]] = {
    "misaligned code": (
        lambda b, _: b.section("kprobe/x", bytes(12), flags=6),
        e.EXIT,
        "not a whole number of instructions",
    ),
    "misaligned function": (
        lambda b, _: b.symbol("f", b.section("xdp", e.EXIT, flags=6), 4, 8),
        e.EXIT,
        "whole number of instructions",
    ),
    "function beyond the section": (
        lambda b, _: b.symbol("f", b.section("xdp", e.EXIT, flags=6), 8, 16),
        e.EXIT,
        "leaves the section",
    ),
    "function far away": (lambda b, m: b.symbol("f", m, 1 << 63, 8), e.EXIT, "leaves the section"),
    "overlapping functions": (lambda b, m: b.symbol("f", m, 8, 8), e.EXIT, "overlaps"),
    "nameless function": (
        lambda b, _: b.symbol("", b.section("xdp", e.EXIT, flags=6), 0, 16),
        e.EXIT,
        "has no name",
    ),
    "a name twice": (lambda b, _: b.program("main", "xdp"), e.EXIT, "defined twice"),
    "a section twice": (lambda b, _: b.program("f", "socket"), e.EXIT, "occurs twice"),
    "half an ld_imm64": (lambda b, m: None, e.EXIT + e.LOAD[:8], "inside an ld_imm64"),
    "two symbol tables": (lambda b, _: b.section("s", kind=e.SYMTAB), e.EXIT, "more than one"),
    "symbol in no section": (lambda b, _: b.symbol("s", 77), e.EXIT, "which does not exist"),
    "relocation kind": (lambda b, m: b.relocate(m, (0, 77, 1)), e.LOAD, "unknown relocation"),
    "relocation of a move": (lambda b, m: b.relocate(m, (0, 1, 1)), e.EXIT, "does not fit"),
    "relocation in between": (lambda b, m: b.relocate(m, (4, 10, 1)), e.CALL, "does not fit"),
    "relocation far away": (lambda b, m: b.relocate(m, (64, 1, 1)), e.LOAD, "has 16 bytes"),
    "relocation of no symbol": (lambda b, m: b.relocate(m, (0, 1, 9)), e.LOAD, "does not exist"),
    "relocation of no section": (lambda b, m: b.relocate(99, (0, 1, 1)), e.LOAD, "section 99"),
    "two relocations of one": (
        lambda b, m: b.relocate(m, (0, 10, 1), (0, 10, 1)),
        e.CALL,
        "two relocations",
    ),
    "relocation of a helper call": (
        lambda b, m: b.relocate(m, (0, 10, 1)),
        b"\x85" + bytes(7),
        "helper call",
    ),
    "call of nothing": (lambda b, m: None, b"\x85\x10" + bytes(2) + b"\x09\0\0\0", "no function"),
    "call far back": (lambda b, m: None, b"\x85\x10" + bytes(5) + b"\x80", "no function"),
    "a huge .bss": (
        lambda b, _: b.section(".bss", kind=e.NOBITS, size=1 << 60),
        e.EXIT,
        "limit is 256 MiB",
    ),
    "a huge section": (
        lambda b, _: b.section(".data", size=1 << 60),
        e.EXIT,
        r"section \d+ \(\.data, PROGBITS\): .* do not fit",
    ),
    "data without BTF map": (lambda b, _: b.section(".maps", bytes(8)), e.EXIT, "compile with -g"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_objects_say_where(name: str) -> None:
    change, code, problem = BROKEN[name]
    with pytest.raises(FormatError, match=problem) as caught:
        read_object(_with(change, code))
    assert caught.value.source == "bytes"
    assert caught.value.where


def test_data_addresses_stay_inside() -> None:
    built = ElfBuilder()
    place = built.symbol("", built.section(".data", bytes(8)), kind=e.SECTION, binding=e.LOCAL)
    main = built.program(code=b"\x18\x01\0\0\x08" + bytes(11) + e.EXIT)
    built.relocate(main, (0, 1, place))
    with pytest.raises(FormatError, match="0x8 is outside of 8 bytes"):
        read_object(built.build())


def test_struct_ops_maps_need_btf() -> None:
    built = ElfBuilder()
    built.section(".struct_ops.link", bytes(8))
    with pytest.raises(FormatError, match=r"section \.struct_ops\.link: has no BTF"):
        read_object(built.build())


@pytest.mark.parametrize(
    ("offset", "value", "problem"),
    [
        (0, b"\x7fELG", "not an ELF file"),
        (4, b"\1", "class 1"),
        (5, b"\3", "byte order 3"),
        (6, b"\0", "version 0"),
        (16, b"\2\0", "ET_EXEC"),
        (18, b"\x3e\0", "EM_X86_64"),
        (18, b"\xee\xee", "machine 61166"),
        (40, b"\xff" * 8, "beyond the end"),
        (58, b"\1\0", "of 1 bytes"),
        (60, b"\0\0", "beyond the end|no sections"),
        (60, b"\xff\xff", "beyond the end"),
        (62, b"\0\0", "not a string table"),
        (62, b"\xff\xff", "not a string table"),
    ],
)
def test_bad_headers_are_refused(offset: int, value: bytes, problem: str) -> None:
    data = bytearray((DATA / "elf_functions.bpf.o").read_bytes())
    data[offset : offset + len(value)] = value
    if offset == 60 and value == b"\0\0":  # extended numbering: the count is in section 0
        (start,) = struct.unpack_from("<Q", data, 40)
        struct.pack_into("<Q", data, start + 32, 1 << 40)
    with pytest.raises(FormatError, match=problem):
        read_object(bytes(data))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"version https://git-lfs", bytes(64)])
def test_a_file_that_is_not_elf_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="ELF header"):
        read_object(data)


HOSTILE = (0, 3, 0x7FFFFFFF, 1 << 60, (1 << 64) - 1)


@pytest.mark.parametrize("name", ["elf_maps", "elf_big_endian"])
def test_every_header_field_may_be_anything(name: str) -> None:
    """Each field of the ELF header, section headers and symbols, with hostile values in turn."""
    whole = (DATA / f"{name}.bpf.o").read_bytes()
    order = "<" if whole[5] == 1 else ">"
    (start,) = struct.unpack_from(order + "Q", whole, 40)
    (count,) = struct.unpack_from(order + "H", whole, 60)
    places = _fields(16, "HHIQQQIHHHHHH", order)
    for section in range(count):
        header = start + 64 * section
        places += _fields(header, "IIQQQQIIQQ", order)
        kind, offset, size = _section(whole, header, order)
        if kind == e.SYMTAB:
            for symbol in range(offset, offset + size, 24):
                places += _fields(symbol, "IBBHQQ", order)
    refused = 0
    for offset, layout in places:
        field = struct.Struct(layout)
        for value in HOSTILE:
            data = bytearray(whole)
            field.pack_into(data, offset, value & ((1 << 8 * field.size) - 1))
            try:
                read_object(bytes(data))
            except PurebpfError:
                refused += 1
    assert refused > len(places)


def _fields(offset: int, layout: str, order: str) -> list[tuple[int, str]]:
    found = []
    for letter in layout:
        found.append((offset, order + letter))
        offset += struct.calcsize(order + letter)
    return found


def _section(data: bytes, header: int, order: str) -> tuple[int, int, int]:
    (kind,) = struct.unpack_from(order + "I", data, header + 4)
    offset, size = struct.unpack_from(order + "QQ", data, header + 24)
    return kind, offset, size
