"""Objects of older compilers, and static programs, as specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.elf import read_object
from tests.support.builders.old_objects import with_old_relocations

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("elf_maps", ".rel.maps"),
        ("load_tail", ".rel.maps"),
        ("attach_struct_ops", ".rel.struct_ops"),
        ("attach_struct_ops", ".rel?.struct_ops.link"),
    ],
)
def test_relocations_of_data_have_either_type(name: str, section: str) -> None:
    data = (DATA / f"{name}.bpf.o").read_bytes()
    now, then = read_object(data), read_object(with_old_relocations(data, section))
    assert {name: each.initial for name, each in then.maps.items()} == {
        name: each.initial for name, each in now.maps.items()
    }


def test_static_programs_are_programs_unless_others_call_them() -> None:
    spec = read_object(DATA / "load_static_programs.bpf.o")
    assert list(spec.programs) == ["is_static", "is_global", "is_static_elsewhere"]
    assert list(spec.functions) == ["is_static", "add_one", "is_global", "is_static_elsewhere"]
