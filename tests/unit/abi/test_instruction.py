"""Instructions as bytes, in both byte orders."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.instruction import LD_IMM64, Instruction, pack, unpack

CODE = [
    Instruction(LD_IMM64, 1, 2, 0, -1),
    Instruction(0, 0, 0, 0, 0x7FFFFFFF),
    Instruction(0x85, 0, 1, 0, -1),
    Instruction(0x05, 0, 0, -3, 0),
]


def test_pack_and_unpack_agree():
    assert unpack(pack(CODE)) == CODE


def test_registers_share_a_byte():
    assert pack(CODE[:1]) == bytes.fromhex("1821 0000 ffffffff")


def test_big_endian_swaps_the_registers_too():
    assert unpack(bytes.fromhex("1812 0000 ffffffff"), "big") == CODE[:1]


instructions = st.builds(
    Instruction,
    st.integers(0, 255),
    st.integers(0, 15),
    st.integers(0, 15),
    st.integers(-(1 << 15), (1 << 15) - 1),
    st.integers(-(1 << 31), (1 << 31) - 1),
)


@given(st.lists(instructions, max_size=20))
def test_any_instructions_come_back(code):
    assert unpack(pack(code)) == code


@given(st.binary(max_size=20).map(lambda raw: raw * 8))
def test_any_bytes_come_back(raw):
    assert pack(unpack(raw)) == raw
