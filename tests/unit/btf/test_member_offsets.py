"""Members of a struct that are found without an index of the types: as the index has them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from purebpf.btf.types.kinds import Kind, Struct
from purebpf.btf.types.member_offsets import member_offsets
from purebpf.btf.types.parse import Btf
from tests.support.builders.btf_builder import BtfBuilder

VMLINUX = Path("/sys/kernel/btf/vmlinux")


def task(*, bitfield: int = 0) -> bytes:
    """A blob with a struct of three members, and other types of its name."""
    builder = BtfBuilder()
    number = builder.int("u64", 8)
    builder.fwd("task")
    builder.typedef("task", number)
    builder.struct("task", [("other", number)])
    flags = ("flags", number, 64, bitfield) if bitfield else ("flags", number)
    builder.struct("task", [("first", number), flags, ("last", number)])
    return builder.bytes()


def test_a_struct_that_has_all_members() -> None:
    assert member_offsets(task(), "task", ("last", "first")) == {"first": 0, "last": 16}
    assert member_offsets(task(), "task", ("other",)) == {"other": 0}


def test_offsets_beside_bitfields() -> None:
    assert member_offsets(task(bitfield=3), "task", ("last",)) == {"last": 16}


@pytest.mark.parametrize(
    ("name", "members"),
    [("task", ("first", "absent")), ("tas", ("first",)), ("ask", ("first",)), ("u64", ("first",))],
)
def test_what_is_not_there(name: str, members: tuple[str, ...]) -> None:
    assert member_offsets(task(), name, members) == {}


def test_members_of_a_struct_without_a_name_are_left_to_the_index() -> None:
    builder = BtfBuilder()
    number = builder.int("u64", 8)
    inner = builder.struct("", [("first", number)])
    builder.struct("task", [("", inner), ("last", number)])
    assert member_offsets(builder.bytes(), "task", ("first",)) == {}


def test_damaged_blobs_give_nothing_or_an_answer() -> None:
    chance = random.Random(1)
    whole = task()
    for length in range(len(whole)):
        assert member_offsets(whole[:length], "task", ("first",)) in ({}, {"first": 0})
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        found = member_offsets(bytes(damaged), "task", ("first", "last"))
        assert found == {} or found.keys() == {"first", "last"}


def test_structs_of_this_kernel() -> None:
    if not VMLINUX.exists():
        pytest.skip(f"no {VMLINUX}")
    data = VMLINUX.read_bytes()
    btf = Btf(data)
    compared = 0
    for name in ("task_struct", "thread_struct", "file", "inode", "net_device", "sock", "page"):
        for type_id in btf.find(name, Kind.STRUCT)[:1]:
            struct = btf.type(type_id)
            assert isinstance(struct, Struct)
            members = {m.name: m.bit_offset // 8 for m in struct.members if m.name}
            assert member_offsets(data, name, tuple(members)) == members
            compared += 1
    assert compared > 3
