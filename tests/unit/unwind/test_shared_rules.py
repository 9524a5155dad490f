"""What an unwinder remembers of addresses takes little memory, however many there are."""

from __future__ import annotations

import pytest

from purebpf.unwind import shared_rules
from purebpf.unwind.machine import X86_64
from purebpf.unwind.plan import Special, plan_of
from purebpf.unwind.rule import How, Row
from purebpf.unwind.shared_rules import SharedRules


def plan(cfa=8, registers=None):
    return plan_of(Row(7, cfa, {16: -8} if registers is None else registers, 16, False), X86_64)


def test_equal_plans_are_one():
    shared = SharedRules()
    first = shared.keep("file", 0x1000, plan(), exact=True)
    assert shared.keep("other", 0x2000, plan(), exact=False) is first
    assert shared.find("other", 0x2000, exact=False) is first
    order = plan(24, {16: -8, 6: -16}), plan(24, {6: -16, 16: -8})
    assert shared.keep("file", 1, order[0], exact=True) is shared.keep(
        "file", 2, order[1], exact=True
    )


@pytest.mark.parametrize(
    "other",
    [plan(16), plan(8, {16: -8, 6: -16}), plan(8, {16: (How.UNDEFINED, 0)}), plan(b"\x77\x08")],
    ids=["cfa", "saved", "end", "expression"],
)
def test_others_stay_what_they_are(other):
    shared = SharedRules()
    shared.keep("file", 0x1000, plan(), exact=True)
    assert shared.keep("file", 0x1001, other, exact=True) is other
    assert shared.find("file", 0x1000, exact=True) == plan()


def test_an_address_is_another_one_for_a_caller_and_in_another_file():
    shared = SharedRules()
    shared.keep("file", 0x1000, Special.NO_RULE, exact=True)
    assert shared.find("file", 0x1000, exact=True) is Special.NO_RULE
    assert shared.find("file", 0x1000, exact=False) is None
    assert shared.find("other", 0x1000, exact=True) is None


def test_they_are_forgotten_when_they_are_many(monkeypatch):
    monkeypatch.setattr(shared_rules, "_MOST", 10)
    shared = SharedRules()
    for address in range(25):
        shared.keep("file", address, plan(8 * address + 8), exact=True)
    known = [address for address in range(25) if shared.find("file", address, exact=True)]
    assert known == [20, 21, 22, 23, 24]
