"""The specs that are written down beside the shipped objects are what the objects say."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf import objects, read_object
from scripts.generate_specs import shipped

NAMES = sorted(
    path.name.removesuffix(".bpf.o") for path in Path(objects.__file__).parent.glob("*.bpf.o")
)


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_is_what_reading_the_object_gives(name):
    read = read_object(objects.read(f"{name}.bpf.o"))
    spec = objects.spec(name)
    assert spec == read._replace(name=name, source=f"{name}.bpf.o")
    for mapping in ("programs", "functions", "maps", "variables", "externs"):
        assert list(getattr(spec, mapping)) == list(getattr(read, mapping)), "in another order"


def test_specs_are_generated_and_none_is_left_over():
    expected = {each.path: each.text for each in shipped()}
    found = {path: path.read_text() for path in Path(objects.__file__).parent.glob("*_spec.py")}
    assert found == expected, "run `make bpf`"


def test_an_object_that_is_not_shipped():
    with pytest.raises(ModuleNotFoundError, match="nonesuch"):
        objects.spec("nonesuch")
