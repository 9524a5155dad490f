"""Specs are data: they are copied and pickled, also after a change or a look at values."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from purebpf import asm
from purebpf.elf import read_object
from purebpf.spec import ObjectSpec

DATA = Path(__file__).parents[2] / "data"


def used(spec: ObjectSpec) -> ObjectSpec:
    """The same after every variable was read, so that codecs are remembered."""
    for name in spec.variables:
        spec.get(name)
    return spec


@pytest.mark.parametrize("name", ["elf_data", "elf_maps", "elf_externs", "load_jump_tables"])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_spec_is_the_same_after_pickling(name: str, protocol: int) -> None:
    spec = used(read_object(DATA / f"{name}.bpf.o"))
    again = pickle.loads(pickle.dumps(spec, protocol))
    assert again == spec
    assert {n: again.get(n) for n in again.variables} == {n: spec.get(n) for n in spec.variables}
    assert again.btf is not None
    assert again.btf.pointer_size == 8


def test_a_changed_spec_is_pickled_with_its_values() -> None:
    spec = read_object(DATA / "elf_data.bpf.o").set(target_pid=7).only("use_everything")
    again = pickle.loads(pickle.dumps(spec))
    assert again.get("target_pid") == 7
    assert again.set(target_pid=8).get("target_pid") == 8
    assert copy.deepcopy(spec) == spec == copy.copy(spec)


def test_an_assembled_spec_is_pickled() -> None:
    code = asm.Program("nothing", "xdp")
    code.move(asm.R0, 0)
    code.exit()
    spec = asm.build("nothing", [code])
    assert pickle.loads(pickle.dumps(spec)) == spec
