"""Maps that are left out: code that does not run may use them, other code is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf.abi.instruction import CALL
from purebpf.relocate import Linker
from purebpf.relocate.code import Code
from purebpf.relocate.link import POISONED_MAP

pytestmark = pytest.mark.needs("bpf")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data/load_optional_map.bpf.o")


def test_with_the_map_it_counts():
    with purebpf.load(SPEC.set(has_table=True)) as obj:
        assert [obj.programs["count"].test_run(bytes(14)).retval for _ in range(3)] == [1, 2, 3]


def test_code_that_is_dead_may_use_a_map_that_is_left_out():
    with purebpf.load(SPEC.leave_out("table")) as obj:
        assert "table" not in obj.maps
        assert obj.programs["count"].test_run(bytes(14)).retval == 99


def test_code_that_runs_is_refused_and_the_error_says_why():
    with pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(SPEC.set(has_table=True).leave_out("table"))
    assert caught.value.poisoned == "it uses map 'table', which was left out (autocreate is False)"
    assert caught.value.poisoned in str(caught.value)
    assert "bpf_map_lookup_elem(&table" in caught.value.source


def test_both_halves_of_the_address_become_calls_that_tell_the_map():
    left_out = SPEC.leave_out("table")
    linked = Linker(left_out, []).link("count")
    code = Code(linked.code, "little")
    number = POISONED_MAP + list(SPEC.maps).index("table")
    slots = [slot for slot in range(len(code)) if code.immediate(slot) == number]
    assert len(slots) == 2
    assert {code.opcode(slot) for slot in slots} == {CALL}
    assert set(linked.poisoned) == set(slots)
    assert "table" not in linked.maps


def test_a_map_that_is_not_there_cannot_be_left_out():
    with pytest.raises(KeyError, match=r"unknown map 'tabel'; similar: table"):
        SPEC.leave_out("tabel")
