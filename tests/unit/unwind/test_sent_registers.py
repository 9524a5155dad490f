"""Registers as the programs of bpf_src/include/user_registers.h send them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from purebpf.unwind.machine import AARCH64, X86_64
from purebpf.unwind.sent_registers import NAMES, code_bits, read_registers

HEADER = (Path(__file__).parents[3] / "bpf_src/include/user_registers.h").read_text()
_TAKEN = dict(re.findall(r"\(to\)->(\w+) = word\((\w+)\)", HEADER))


def test_the_words_are_those_of_the_struct():
    struct = re.search(r"struct registers \{(.*?)\};", HEADER, re.DOTALL)
    assert struct
    assert tuple(re.findall(r"\w+(?=[,;])", struct[1])) == NAMES


def test_arm64_has_the_words_where_the_program_puts_them():
    """Each register of the header, once, and nothing else."""
    own = {"ARM64_SP": 31, "ARM64_PC": 32}
    sent = {name: own[at] if at in own else int(at) for name, at in _TAKEN.items()}
    assert sent.keys() | {"cs"} == set(NAMES)
    assert len(set(sent.values())) == len(sent)
    words = [1000 + sent.get(name, 0) for name in NAMES]
    words[NAMES.index("cs")] = 0x33
    pc, values, is_compat = read_registers(AARCH64, words)
    assert (pc, is_compat) == (1032, False)
    assert len(values) == AARCH64.registers
    known = {number: value for number, value in enumerate(values) if value is not None}
    assert known == {number: 1000 + number for number in sent.values() if number != 32}
    assert {*AARCH64.kept, AARCH64.ra, AARCH64.sp} <= known.keys()


def test_x86_64_has_its_own():
    words = range(100, 121)
    pc, values, is_compat = read_registers(X86_64, words)
    assert pc == 116
    assert values == (
        110,
        112,
        111,
        105,
        113,
        114,
        104,
        119,
        109,
        108,
        107,
        106,
        103,
        102,
        101,
        100,
    )
    assert is_compat
    assert not read_registers(X86_64, [0x33] * 21).is_compat


@pytest.mark.parametrize(
    ("machine", "stack", "bits"),
    [(AARCH64, 0xFFFFE4A31000, 48), (AARCH64, 0x7FD8A31000, 39), (X86_64, 0x7FFC12345000, 0)],
)
def test_addresses_of_code_end_where_signatures_begin(machine, stack, bits):
    assert code_bits(machine, stack) == (1 << bits) - 1
