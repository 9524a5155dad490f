"""An index of types that was written gives the answers of the types themselves, or none."""

from __future__ import annotations

import pytest

from purebpf.btf.types.index_file import pack_index, with_packed_index
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError
from tests.support.builders.btf_builder import BtfBuilder

NAMES = ("int", "task_struct", "task_struct___old", "pid_t", "no_such_type")


def make(*more: str) -> Btf:
    """Types with and without a flavour, a name that two have, and more structs."""
    builder = BtfBuilder()
    number = builder.int("int", 4)
    builder.typedef("pid_t", number)
    for name in ("task_struct", "task_struct___old", "task_struct", *more):
        builder.struct(name, [("pid", number)])
    return builder.btf()


def answers(btf: Btf) -> list[object]:
    """Every answer by name, and every type."""
    found: list[object] = [btf.type(type_id) for type_id in range(len(btf))]
    for name in NAMES:
        found += [btf.find(name), btf.find(name, Kind.STRUCT), btf.find_essential(name)]
    return found


def test_a_written_index_gives_the_same_answers() -> None:
    btf = make()
    again = with_packed_index(btf.data, pack_index(btf), "again")
    assert again.find("task_struct") == (3, 5)
    assert again.find_essential("task_struct") == (3, 4, 5)
    assert answers(again) == answers(btf)
    assert pack_index(again) == pack_index(btf)


def test_an_index_of_other_types_is_refused() -> None:
    with pytest.raises(FormatError, match="belongs to other types"):
        with_packed_index(make("other").data, pack_index(make("another")), "blob")


@pytest.mark.parametrize("at", [0, 16, 20, 24, 28, 40, -1])
def test_a_damaged_index_is_refused(at: int) -> None:
    btf = make()
    packed = bytearray(pack_index(btf))
    packed[at] ^= 4
    with pytest.raises(FormatError, match="index"):
        with_packed_index(btf.data, bytes(packed), "blob")


@pytest.mark.parametrize("size", [0, 10, 28, 40])
def test_a_cut_index_is_refused(size: int) -> None:
    btf = make()
    with pytest.raises(FormatError, match="index"):
        with_packed_index(btf.data, pack_index(btf)[:size], "blob")


def test_names_that_share_their_ends_have_no_index() -> None:
    builder = BtfBuilder()
    builder.int("unsigned_int", 4)
    builder.raw(Kind.INT, builder.string("unsigned_int") + 9, 0, 4, [32])
    btf = builder.btf()
    assert btf.find("int") == (2,)
    assert pack_index(btf) == b""
