"""Enum members and object names."""

from __future__ import annotations

import pytest

from purebpf.abi.bpf import bpf_map_type
from purebpf.abi.names import member, member_name
from purebpf.kernel.maps.map_create import kernel_name
from purebpf.spec import MapSpec


def test_a_known_number_becomes_its_member() -> None:
    found = member(bpf_map_type, 1)
    assert found is bpf_map_type.BPF_MAP_TYPE_HASH
    assert member_name(bpf_map_type, 1) == "BPF_MAP_TYPE_HASH"
    assert member_name(bpf_map_type, 1, prefix="BPF_MAP_TYPE_") == "HASH"


def test_a_number_newer_than_the_tables_stays_one() -> None:
    assert type(member(bpf_map_type, 9999)) is int
    assert member_name(bpf_map_type, 9999) == "type 9999"
    assert member_name(bpf_map_type, 9999, unknown="") == "9999"


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("on_open", b"on_open"),
        ("a.b_c", b"a.b_c"),
        ("with space-dash", b"with_space_dash"),
        ("sixteen_letters_", b"sixteen_letters"),
        ("größe", b"gr__e"),
    ],
)
def test_object_names_are_what_the_kernel_accepts(name: str, accepted: bytes) -> None:
    assert kernel_name(MapSpec(name, 2, 4, 8, 1)) == accepted
