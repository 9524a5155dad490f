"""CO-RE on what clang makes: tests/data/core/core_values.bpf.c against core_values.target.c."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from purebpf.abi.bpf import bpf_core_relo_kind as K  # noqa: N812
from purebpf.btf.core.matching import CoreResult, match
from purebpf.elf import read_object
from purebpf.spec import ObjectSpec

DATA = Path(__file__).parents[2] / "data/core"


@pytest.fixture(scope="module")
def local() -> ObjectSpec:
    return read_object(DATA / "core_values.bpf.o")


@pytest.fixture(scope="module")
def target() -> ObjectSpec:
    return read_object(DATA / "core_values.target.o")


def results(local: ObjectSpec, target: ObjectSpec, function: str) -> list[CoreResult]:
    assert local.btf is not None
    assert target.btf is not None
    return match(local.btf, local.functions[function].core_relocations, [target.btf])


def values(local: ObjectSpec, target: ObjectSpec, function: str) -> dict[tuple[str, K], int]:
    return {(r.what, K(r.kind)): r.value for r in results(local, target, function)}


def test_fields_have_the_values_of_the_target(local: ObjectSpec, target: ObjectSpec) -> None:
    offset, size = K.BPF_CORE_FIELD_BYTE_OFFSET, K.BPF_CORE_FIELD_BYTE_SIZE
    exists = K.BPF_CORE_FIELD_EXISTS
    assert values(local, target, "fields") == {
        ("struct thing.moved", offset): 192,
        ("struct thing.widened", size): 8,
        ("struct thing.gone", exists): 0,
        ("struct thing.list[1].second", offset): 112 + 16 + 8,
        ("struct thing.list[1]", size): 16,
        ("struct thing.next", exists): 1,
        ("struct thing.buried", offset): 200 + 8 + 8,
        ("struct thing.tail[3].second", offset): 232 + 3 * 16 + 8,
        ("struct thing___flavoured.moved", size): 4,
        ("struct missing.x", exists): 0,
        ("struct thing.list", size): 80,
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("signed_bits", -11),
        ("flag", 1),
        ("bits", 0x5A5A5),
        ("whole", -12345),
        ("long_bits", -0x1122334455667),
        ("wide", 0x1122334455667788),
    ],
)
def test_bit_fields_are_read_as_clang_wrote_them(
    local: ObjectSpec, target: ObjectSpec, field: str, value: int
) -> None:
    found = values(local, target, "bit_fields")
    offset, size, left, right, signed = (
        found[f"struct bits.{field}", kind]
        for kind in (
            K.BPF_CORE_FIELD_BYTE_OFFSET,
            K.BPF_CORE_FIELD_BYTE_SIZE,
            K.BPF_CORE_FIELD_LSHIFT_U64,
            K.BPF_CORE_FIELD_RSHIFT_U64,
            K.BPF_CORE_FIELD_SIGNED,
        )
    )
    variable = target.variables["bits"]
    image = target.maps[variable.map].contents[variable.offset :][: variable.size]

    loaded = int.from_bytes(image[offset : offset + size], "little")
    (register,) = struct.unpack(
        "q" if signed else "Q", struct.pack("Q", loaded << left & (1 << 64) - 1)
    )

    assert register >> right == value


def test_types_have_the_ids_of_the_target(local: ObjectSpec, target: ObjectSpec) -> None:
    assert local.btf is not None
    assert target.btf is not None
    (thing,) = local.btf.find("thing")
    (kernel_thing,) = target.btf.find("thing", target.btf.kind(9))
    assert values(local, target, "types") == {
        ("struct thing", K.BPF_CORE_TYPE_ID_LOCAL): thing,
        ("struct thing", K.BPF_CORE_TYPE_ID_TARGET): kernel_thing,
        ("struct thing", K.BPF_CORE_TYPE_EXISTS): 1,
        ("struct thing", K.BPF_CORE_TYPE_SIZE): 232,
        ("struct deep", K.BPF_CORE_TYPE_MATCHES): 1,
        ("struct deep___other", K.BPF_CORE_TYPE_MATCHES): 0,
        ("struct missing", K.BPF_CORE_TYPE_EXISTS): 0,
        ("struct missing", K.BPF_CORE_TYPE_SIZE): 0,
        ("struct missing", K.BPF_CORE_TYPE_ID_TARGET): 0,
        ("word", K.BPF_CORE_TYPE_SIZE): 8,
    }


def test_enumerators_have_the_values_of_the_target(local: ObjectSpec, target: ObjectSpec) -> None:
    value, exists = K.BPF_CORE_ENUMVAL_VALUE, K.BPF_CORE_ENUMVAL_EXISTS
    assert values(local, target, "enumerators") == {
        ("enum color::RED", value): 10,
        ("enum color::BLUE___here", value): 30,
        ("enum color::GREEN", exists): 1,
        ("enum color::GONE", exists): 0,
        ("enum large::HUGE", value): 1 << 45,
        ("enum large::NEGATIVE", value): -20,
    }


def test_what_is_missing(local: ObjectSpec, target: ObjectSpec) -> None:
    assert {result.explain() for result in results(local, target, "poisoned")} == {
        "struct thing.gone: no such field on this kernel",
        "struct missing.x: no struct missing on this kernel",
        "enum color::GONE: no such enumerator on this kernel",
    }
