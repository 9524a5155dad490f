"""Classes of objects that other loaders' fixtures name, each loaded and run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_prog_type

BPF_F_LOCK = 4
DATA = Path(__file__).parents[3] / "data"
PATH = DATA / "load_classes.bpf.o"

pytestmark = pytest.mark.needs("bpf")


@pytest.fixture
def obj() -> Iterator[purebpf.Object]:
    with purebpf.load(purebpf.read_object(PATH).only("locks", "touches")) as obj:
        yield obj


def test_a_lock_in_a_value_needs_the_types_of_the_map(obj: purebpf.Object):
    for _ in range(5):
        assert obj.programs["locks"].test_run(bytes(14)).retval == 0
    assert obj.maps["guarded"].get(0, flags=BPF_F_LOCK).count == 15


def test_the_lock_of_a_value_need_not_be_given(obj: purebpf.Object):
    guarded = obj.maps["guarded"]
    guarded[0] = {"count": 7}
    assert guarded[0].count == 7
    guarded.update({0: {"count": 11}})
    assert obj.programs["locks"].test_run(bytes(14)).retval == 0
    assert guarded.get(0, flags=BPF_F_LOCK).count == 14


def test_globals_are_where_they_are(obj: purebpf.Object):
    assert obj.programs["touches"].test_run(bytes(14)).retval == 5
    obj.globals["padded"] = {"first": 7, "second": 100, "third": 9}
    obj.globals["may_be_replaced"] = 6
    assert obj.programs["touches"].test_run(bytes(14)).retval == 6
    wide = obj.globals["wide"]
    assert (len(wide), wide[8191], sum(wide)) == (8192, 9, 9)
    assert obj.globals["total"] == 102
    assert obj.spec.variables["padded"].size == 24
    assert "not_shown" not in obj.globals


@pytest.mark.needs("snprintf")
def test_string_literals_are_a_map_without_variables():
    spec = purebpf.read_object(PATH)
    (strings,) = [name for name in spec.maps if name.startswith(".rodata.str")]
    assert spec.maps[strings].contents == b"%s\0twelve chars\0"
    assert not [each for each in spec.variables.values() if each.map == strings]
    with purebpf.load(spec.only("spells")) as obj:
        assert obj.programs["spells"].test_run(bytes(14)).retval == len("twelve chars") + 1


def test_what_a_linker_put_together_runs_as_it_was_put_together():
    with purebpf.load(DATA / "elf_linked.bpf.o") as obj:
        # same_name of its own half, the strong overridden, from_b and the variables of the other
        assert obj.programs["entry_a"].test_run().retval == (1 + 2) + (1 - 1) + (2 * 3 + 1)
        assert obj.programs["entry_b"].test_run().retval == (1 * 3) + (1 - 1)
        obj.globals["shared"] = 10
        assert obj.programs["entry_a"].test_run().retval == (10 + 2) + (10 - 1) + (2 * 3 + 10)


def test_a_section_of_another_project_is_what_its_user_says():
    spec = purebpf.read_object(DATA / "elf_functions.bpf.o").only("unknown")
    named = spec.programs["unknown"]._replace(type=bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER)
    with purebpf.load(spec._replace(programs={"unknown": named})) as obj:
        assert obj.programs["unknown"].test_run(bytes(14)).retval == 0
