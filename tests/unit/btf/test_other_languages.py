"""Types of C++ and Rust that C does not have: base classes, and values without bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from purebpf.btf.codec.codecs import codec
from purebpf.btf.types import kinds
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.write import write_btf
from purebpf.elf import read_object
from purebpf.errors import SchemaError

INT = kinds.Int("u32", 4, 32, 0, signed=False, is_char=False, is_bool=False)
UNIT = kinds.Int("()", 0, 0, 0, signed=False, is_char=False, is_bool=False)


def btf_of(*members: kinds.Member, size: int) -> Btf:
    """`u32`, `()` and a struct, which is type 3."""
    return Btf(write_btf([INT, UNIT, kinds.Struct("Record", size, members)]))


def member(name: str, type_id: int, offset: int) -> kinds.Member:
    return kinds.Member(name, type_id, 8 * offset, 0)


def test_a_base_class_is_bytes() -> None:
    made = codec(btf_of(member("", 0, 0), member("y", 1, 8), size=12), 3)
    raw = bytes(range(12))
    record = made.decode(raw)
    assert (record.base, record.y) == (raw[:8], int.from_bytes(raw[8:], "little"))
    assert made.encode(record) == raw
    assert made.encode({"base": raw[:8], "y": 5}) == raw[:8] + b"\5\0\0\0"


def test_several_base_classes_end_where_the_next_one_begins() -> None:
    members = (member("", 0, 0), member("", 0, 4), member("base", 1, 12))
    record = codec(btf_of(*members, size=16), 3).decode(bytes(range(16)))
    assert (record.base1, record.base2) == (bytes(range(4)), bytes(range(4, 12)))


def test_a_base_class_without_members_is_no_field() -> None:
    record = codec(btf_of(member("", 0, 0), member("x", 1, 0), size=4), 3).decode(b"\7\0\0\0")
    assert record._asdict() == {"x": 7}


def test_a_base_class_alone_has_all_bytes() -> None:
    record = codec(btf_of(member("", 0, 0), size=4), 3).decode(b"abcd")
    assert record.base == b"abcd"


def test_the_unit_type_is_an_empty_tuple() -> None:
    btf = btf_of(member("a", 1, 0), member("unit", 2, 8), member("b", 1, 4), size=8)
    made = codec(btf, 3)
    record = made.decode(b"\1\0\0\0\2\0\0\0")
    assert (record.a, record.unit, record.b) == (1, (), 2)
    assert made.encode(record) == b"\1\0\0\0\2\0\0\0"
    assert codec(btf, 2).decode(b"") == ()
    assert codec(btf, 2).encode(()) == b""
    with pytest.raises(SchemaError):
        codec(btf, 2).encode(5)
    assert btf.sizeof(2) == 0


@pytest.mark.needs("clang")
def test_a_variable_of_a_derived_class(tmp_path: Path) -> None:
    source = """
    struct Base { int x; };
    struct Empty {};
    struct Other { long z; };
    struct Derived : Base, Empty, Other { int y; } d __attribute__((used)) = {{1}, {}, {3}, 2};
    """
    path = tmp_path / "derived.o"
    command = ["clang-19", "-target", "bpf", "-O2", "-g", "-std=c++20", "-x", "c++", "-c", "-"]
    subprocess.run([*command, "-o", path], input=source, text=True, check=True)
    value = read_object(path).get("d")
    assert value.y == 2
    bases = [raw for name, raw in value._asdict().items() if name.startswith("base")]
    assert [int.from_bytes(raw, "little") for raw in bases] == [1, 3]
