"""Maps of before libbpf 1.0: records in a section `maps`."""

from __future__ import annotations

import struct
from hashlib import sha1
from pathlib import Path

import pytest

from purebpf.abi.instruction import EXIT, LD_IMM64, Instruction, pack
from purebpf.btf.types.kinds import Kind
from purebpf.elf import read_object
from purebpf.errors import FormatError, LinkError
from purebpf.spec import MapSpec, ObjectSpec, RelocationKind
from tests.support.builders.elf_builder import ElfBuilder

DATA = Path(__file__).parents[2] / "data"
OBJECT, SECTION, LOCAL = 1, 3, 0
HASH = struct.pack("<5I", 1, 4, 8, 100, 1)
ARRAY = struct.pack("<5I", 2, 4, 4, 1, 0)


def built(contents: bytes, *symbols: tuple[str, int], section: str = "maps") -> ElfBuilder:
    """An object with a section of maps, and a symbol at each offset."""
    builder = ElfBuilder()
    number = builder.section(section, contents)
    for name, offset in symbols:
        builder.symbol(name, number, offset, kind=OBJECT)
    return builder


def maps(contents: bytes, *symbols: tuple[str, int], section: str = "maps") -> list[MapSpec]:
    return list(read_object(built(contents, *symbols, section=section).build()).maps.values())


@pytest.fixture(scope="module")
def spec() -> ObjectSpec:
    return read_object(DATA / "elf_legacy_maps.bpf.o")


def test_five_numbers_are_a_map() -> None:
    assert maps(HASH + ARRAY, ("second", 20), ("first", 0)) == [
        MapSpec("first", 1, 4, 8, 100, 1),
        MapSpec("second", 2, 4, 4, 1, 0),
    ]


def test_flags_may_be_missing_and_sections_may_go_on() -> None:
    assert maps(HASH[:16], ("old", 0), section="maps/tracing") == [MapSpec("old", 1, 4, 8, 100)]


def test_what_follows_is_kept_unless_it_is_zero() -> None:
    tails = struct.pack("<2I", 0, 0), struct.pack("<2I", 0, 2)
    found = maps(HASH + tails[0] + ARRAY + tails[1], ("plain", 0), ("pinned", 28))
    assert [each.extra for each in found] == [b"", tails[1]]


@pytest.mark.parametrize(
    ("contents", "symbols", "problem"),
    [
        (HASH + ARRAY[:19], [("a", 0), ("b", 20)], "39 bytes do not make 2 maps of the same size"),
        (HASH[:12], [("a", 0)], "12 bytes do not make 1 maps"),
        (HASH, [], "20 bytes do not make 0 maps"),
        (HASH + ARRAY, [("a", 0), ("b", 4)], "is at 4, but maps are 20 bytes apart"),
        (HASH + ARRAY, [("a", 0), ("b", 0)], "is at 0, but maps are 20 bytes apart"),
    ],
)
def test_sections_that_are_not_shared_evenly(
    contents: bytes, symbols: list[tuple[str, int]], problem: str
) -> None:
    with pytest.raises(FormatError, match=problem):
        maps(contents, *symbols)


def test_static_maps_are_refused() -> None:
    builder = ElfBuilder()
    builder.symbol("hidden", builder.section("maps", HASH), kind=OBJECT, binding=LOCAL)
    with pytest.raises(FormatError, match="map hidden: is static"):
        read_object(builder.build())


def test_a_section_of_another_name_is_not_a_map() -> None:
    assert maps(HASH, ("data", 0), section="mapsome") == []


@pytest.mark.parametrize(("kind", "problem"), [(OBJECT, ""), (SECTION, "is not a map")])
def test_references_to_legacy_maps_are_resolved(kind: int, problem: str) -> None:
    builder = built(HASH, ("counts", 0))
    code = [Instruction(LD_IMM64, 1, 0, 0, 0), Instruction(0, 0, 0, 0, 0)]
    main = builder.program("main", code=pack([*code, Instruction(EXIT, 0, 0, 0, 0)]))
    number = 1 if kind == OBJECT else builder.symbol("", 3, kind=SECTION, binding=LOCAL)
    builder.relocate(main, (0, 1, number))
    if problem:
        with pytest.raises(LinkError, match=problem):
            read_object(builder.build())
        return
    (found,) = read_object(builder.build()).functions["main"].relocations
    assert (found.kind, found.target) == (RelocationKind.MAP, "counts")


def iproute(kind: int, *extra: int) -> bytes:
    return struct.pack("<9I", kind, 4, 4, 1, 0, *extra)


def test_iproute2s_numbers_are_templates_slots_and_pins() -> None:
    records = [
        ("inner", iproute(2, 5, 2, 0, 3)),
        ("other", iproute(2, 5, 0, 0, 1)),
        ("third", iproute(2, 6, 1, 0, 0)),
        ("outer", iproute(12, 0, 9, 5, 0)),
    ]
    builder = built(
        b"".join(record for _, record in records),
        *((name, 36 * number) for number, (name, _) in enumerate(records)),
    )
    data = builder.build()
    inner, other, third, outer = read_object(data).maps.values()
    digest = sha1(data, usedforsecurity=False).hexdigest()
    assert (inner.pinning, inner.pin_directory) == (1, "tc/globals")
    assert (third.pinning, third.pin_directory) == (1, f"tc/{digest}")
    assert (other.pinning, outer.pinning) == (0, 9)
    assert outer.inner == MapSpec("outer.inner", 2, 4, 4, 1)
    assert outer.initial == ((1, "other"), (3, "inner"))


@pytest.mark.parametrize(
    ("section", "slot"), [("7/3", 3), ("0x7/0x10", 16), ("8/3", None), ("7/3/1", None)]
)
def test_programs_in_numbered_sections_are_tail_calls(section: str, slot: int | None) -> None:
    builder = built(iproute(3, 7, 0, 0, 0) + iproute(2, 8, 0, 0, 0), ("jumps", 0), ("plain", 36))
    builder.program("jumped", section=section)
    spec = read_object(builder.build())
    assert spec.maps["jumps"].initial == (() if slot is None else ((slot, "jumped"),))
    assert spec.programs["jumped"].type == (0 if slot is None else 3)


def test_annotated_types_of_the_right_size_are_those_of_key_and_value(spec: ObjectSpec) -> None:
    counts, last = spec.maps["counts"], spec.maps["last"]
    assert spec.btf is not None
    assert spec.btf.kind(counts.value_type_id) is Kind.STRUCT
    assert spec.btf.name(counts.value_type_id) == "count"
    assert spec.btf.name(counts.key_type_id) == "__u32"
    assert (last.key_type_id, last.value_type_id) == (0, 0)
    assert counts.extra == last.extra == b""
