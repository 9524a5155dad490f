"""Numbers of enums as names."""

from __future__ import annotations

from purebpf.abi.bpf import bpf_map_type
from purebpf.abi.names import member, member_name


def test_a_known_number_becomes_its_member() -> None:
    found = member(bpf_map_type, 1)
    assert found is bpf_map_type.BPF_MAP_TYPE_HASH
    assert member_name(bpf_map_type, 1) == "BPF_MAP_TYPE_HASH"
    assert member_name(bpf_map_type, 1, prefix="BPF_MAP_TYPE_") == "HASH"


def test_a_number_newer_than_the_tables_stays_one() -> None:
    assert type(member(bpf_map_type, 9999)) is int
    assert member_name(bpf_map_type, 9999) == "type 9999"
    assert member_name(bpf_map_type, 9999, unknown="") == "9999"
