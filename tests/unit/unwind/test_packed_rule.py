"""The 8 bytes of a rule that BPF reads."""

from __future__ import annotations

import struct

import pytest

from purebpf.unwind.machine import AARCH64, I386, X86_64
from purebpf.unwind.packed_rule import Flag, Kind, pack_rule
from purebpf.unwind.rule import CFA_EXPRESSION, UNSUPPORTED, How, Rule

_PLAIN = Rule(7, 8, None, -8, False)
_ARM = Rule(31, 32, None, None, False)
_I386 = Rule(4, 4, None, -4, False)
_PLT_OF_I386 = bytes.fromhex("74047800 3f1a3b2a 322422")
_PLT = bytes.fromhex("77088000 3f1a3b2a 332422")


def _packed(rule, machine=X86_64):
    saved, kind, flags, cfa = struct.unpack("<hBBi", pack_rule(rule, machine))
    return Kind(kind), cfa, saved, Flag(flags)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (Kind.SP, 8, 0, 0)),
        ({"cfa": 16, "fp": -16}, (Kind.SP, 16, -16, Flag.FP_SAVED)),
        ({"cfa": 8, "fp": -16}, (Kind.SP, 8, 0, 0)),  # popped: the slot is below sp
        ({"cfa_register": 6, "cfa": 16, "fp": -16}, (Kind.FP, 16, -16, Flag.FP_SAVED)),
        ({"fp": (How.UNDEFINED, 0)}, (Kind.SP, 8, 0, Flag.FP_UNDEFINED)),
        ({"fp": (How.SAME, 0)}, (Kind.SP, 8, 0, 0)),
        ({"fp": (How.EXPRESSION, b"\x76\x70")}, (Kind.SP, 8, -16, Flag.FP_AT_FP)),
        ({"fp": (How.EXPRESSION, b"\x77\x70")}, (Kind.USER, 0, 0, 0)),
        ({"fp": (How.VALUE, 0)}, (Kind.USER, 0, 0, 0)),
        ({"fp": -40000, "cfa": 40000}, (Kind.USER, 0, 0, 0)),
        ({"cfa": 1 << 31}, (Kind.USER, 0, 0, 0)),
        ({"ra": (How.UNDEFINED, 0)}, (Kind.END, 0, 0, 0)),
        ({"ra": -16}, (Kind.USER, 0, 0, 0)),
        ({"ra": None}, (Kind.USER, 0, 0, 0)),
        ({"is_signal": True}, (Kind.SIGNAL, 0, 0, 0)),
        ({"cfa_register": 10}, (Kind.USER, 0, 0, 0)),
        ({"cfa_register": CFA_EXPRESSION, "cfa": _PLT}, (Kind.PLT, 11, 0, 0)),
        ({"cfa_register": CFA_EXPRESSION, "cfa": b"\x76\x70\x06"}, (Kind.DEREF_FP, 0xFFF0, 0, 0)),
        ({"cfa_register": CFA_EXPRESSION, "cfa": b"\x77\x70\x06"}, (Kind.DEREF_SP, 0xFFF0, 0, 0)),
        (
            {"cfa_register": CFA_EXPRESSION, "cfa": b"\x76\x08\x06\x40\x22"},
            (Kind.DEREF_FP, 16 << 16 | 8, 0, 0),
        ),
        ({"cfa_register": CFA_EXPRESSION, "cfa": b"\x76\x70\x06\x06"}, (Kind.USER, 0, 0, 0)),
        ({"cfa_register": CFA_EXPRESSION, "cfa": 8}, (Kind.USER, 0, 0, 0)),
    ],
)
def test_rules_of_x86_64(changes, expected):
    assert _packed(_PLAIN._replace(**changes)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (Kind.SP, 32, 0, Flag.RA_IN_REGISTER)),
        ({"cfa": 0}, (Kind.SP, 0, 0, Flag.RA_IN_REGISTER)),
        ({"fp": -32, "ra": -24}, (Kind.SP, 32, -32, Flag.FP_SAVED | Flag.RA_PAIR)),
        ({"ra": -16}, (Kind.SP, 32, -16, Flag.RA_ALONE)),
        ({"fp": -32, "ra": -8}, (Kind.USER, 0, 0, 0)),
        ({"ra": (How.UNDEFINED, 0)}, (Kind.END, 0, 0, 0)),
        ({"ra": (How.REGISTER, 9)}, (Kind.USER, 0, 0, 0)),
    ],
)
def test_rules_of_arm64(changes, expected):
    assert _packed(_ARM._replace(**changes), AARCH64) == expected


def test_code_without_a_rule_is_not_code_with_an_unknown_one():
    assert pack_rule(UNSUPPORTED, X86_64, is_none=True) == bytes(8)
    assert _packed(UNSUPPORTED)[0] is Kind.USER


def _context(cfa, fp, ra, /, **changes):
    """A rule for the frame of a signal, as the 32-bit vDSO has two."""
    how = How.EXPRESSION
    at_sp = [b"\x74%c" % offset for offset in (cfa, fp, ra)]
    rule = Rule(CFA_EXPRESSION, at_sp[0] + b"\x06", (how, at_sp[1]), (how, at_sp[2]), True)
    return rule._replace(**changes)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (_I386, (Kind.SP, 4, 0, 0)),
        (_I386._replace(cfa=8, fp=-8), (Kind.SP, 8, -8, Flag.FP_SAVED)),
        (_I386._replace(cfa=4, fp=-8), (Kind.SP, 4, 0, 0)),  # popped
        (_I386._replace(cfa_register=5, cfa=8, fp=-8), (Kind.FP, 8, -8, Flag.FP_SAVED)),
        (_I386._replace(cfa_register=1, cfa=0), (Kind.USER, 0, 0, 0)),
        (_I386._replace(ra=-8), (Kind.USER, 0, 0, 0)),
        (_I386._replace(ra=(How.UNDEFINED, 0)), (Kind.END, 0, 0, 0)),
        (_I386._replace(cfa_register=CFA_EXPRESSION, cfa=_PLT_OF_I386), (Kind.PLT, 11, 0, 0)),
        (
            Rule(CFA_EXPRESSION, b"\x75\x7c\x06", (How.EXPRESSION, b"\x75\0"), -4, False),
            (Kind.DEREF_FP, 0xFFFC, 0, Flag.FP_AT_FP),  # main, which aligns its stack
        ),
        (_context(32, 28, 60), (Kind.SIGNAL, 4, 0, 0)),
        (_context(28, 24, 56), (Kind.SIGNAL, 0, 0, 0)),
        (_context(28, 20, 56), (Kind.USER, 0, 0, 0)),
        (_context(28, 24, 60), (Kind.USER, 0, 0, 0)),
        (_context(28, 24, 56, cfa=b"\x75\x1c\x06"), (Kind.USER, 0, 0, 0)),
        (_context(28, 24, 56, cfa=0), (Kind.USER, 0, 0, 0)),
    ],
)
def test_rules_of_i386(rule, expected):
    kind, cfa, saved, flags = _packed(rule, I386)
    assert flags & Flag.OF_I386
    assert (kind, cfa, saved, flags & ~Flag.OF_I386) == expected
