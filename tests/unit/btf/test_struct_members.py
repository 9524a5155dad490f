"""Single members of a struct are those of the decoded struct; damage is found where it is read."""

from __future__ import annotations

import struct

import pytest

from purebpf.btf.types.kinds import Struct
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.struct_members import count_members, find_members, read_member
from purebpf.errors import FormatError

_NAMES = b"\0int\0pair\0first\0second\0"
_INT = struct.pack("<IIII", 1, 1 << 24, 4, 32)


def _pair(*members: tuple[int, int, int], bitfields: bool = False) -> Btf:
    info = 4 << 24 | len(members) | bitfields << 31
    types = _INT + struct.pack("<III", 5, info, 8)
    types += b"".join(struct.pack("<III", *member) for member in members)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(_NAMES))
    return Btf(header + types + _NAMES)


@pytest.mark.parametrize("decoded", [False, True])
@pytest.mark.parametrize(
    ("members", "bitfields"),
    [
        ([(10, 1, 0), (16, 1, 32)], False),
        ([(0, 1, 0), (16, 1, 32)], False),
        ([(10, 1, 3 << 24), (16, 1, 5 << 24 | 3)], True),
    ],
)
def test_a_member_is_that_of_the_decoded_struct(
    members: list[tuple[int, int, int]], *, bitfields: bool, decoded: bool
) -> None:
    whole = _pair(*members, bitfields=bitfields).type(2)
    assert isinstance(whole, Struct)
    btf = _pair(*members, bitfields=bitfields)
    if decoded:
        btf.type(2)
    assert count_members(btf, 2) == 2
    assert tuple(read_member(btf, 2, index) for index in range(2)) == whole.members
    for name in ("first", "second", "firs", "econd", "none"):
        assert list(find_members(btf, 2, name)) == [
            (index, member)
            for index, member in enumerate(whole.members)
            if member.name in {name, ""}
        ]


def test_a_name_outside_of_the_strings_is_found_when_it_is_passed() -> None:
    btf = _pair((10, 1, 0), (1000, 1, 32))
    with pytest.raises(FormatError, match="outside of 23 bytes of strings"):
        list(find_members(btf, 2, "second"))
    with pytest.raises(FormatError, match="outside of 23 bytes of strings"):
        read_member(btf, 2, 1)


def test_a_type_that_does_not_exist_is_found_when_the_member_is_read() -> None:
    btf = _pair((10, 1, 0), (16, 7, 32))
    assert read_member(btf, 2, 0).name == "first"
    with pytest.raises(FormatError, match="refers to type 7 of 3"):
        list(find_members(btf, 2, "second"))


def test_members_of_a_split_blob_have_names_in_its_base() -> None:
    base = _pair((10, 1, 0))
    names = b"own\0"
    types = struct.pack("<III", len(_NAMES), 4 << 24 | 2, 8)
    types += struct.pack("<IIIIII", 16, 1, 0, len(_NAMES), 1, 32)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names))
    btf = Btf(header + types + names, base)
    assert [member.name for _, member in find_members(btf, 3, "second")] == ["second"]
    assert [member.name for _, member in find_members(btf, 3, "own")] == ["own"]
    assert [member.name for _, member in find_members(btf, 2, "first")] == ["first"]
