"""The specs that are packed beside the shipped objects are what the objects say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from purebpf import objects, read_object
from purebpf.errors import FormatError
from purebpf.objects.packed import FORMS, unpack
from scripts.generate_specs import pack, shipped

FOLDER = Path(objects.__file__).parent
NAMES = sorted(path.name.removesuffix(".bpf.o") for path in FOLDER.glob("*.bpf.o"))


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_is_what_reading_the_object_gives(name):
    read = read_object(objects.read(f"{name}.bpf.o"))
    spec = objects.spec(name)
    assert spec == read._replace(name=name, source=f"{name}.bpf.o")
    for mapping in ("programs", "functions", "maps", "variables", "externs"):
        assert list(getattr(spec, mapping)) == list(getattr(read, mapping)), "in another order"


def kind_of(value: object) -> type:
    """The type of a field; a read-only mapping is as good as a dict."""
    return Mapping if isinstance(value, Mapping) else type(value)


@pytest.mark.parametrize("name", NAMES)
def test_unpacked_fields_have_the_types_of_those_that_were_read(name):
    read = read_object(objects.read(f"{name}.bpf.o"))
    spec = objects.spec(name)
    for mapping in ("programs", "functions", "maps", "variables", "externs"):
        for key, row in getattr(spec, mapping).items():
            other = getattr(read, mapping)[key]
            assert type(row) is type(other)
            assert [*map(kind_of, row)] == [*map(kind_of, other)]
    assert spec.btf is not None
    assert spec.btf.source == f"{name}.bpf.o .BTF"


def test_specs_are_generated_and_none_is_left_over():
    expected = {each.path: each.data for each in shipped()}
    found = {path: path.read_bytes() for path in FOLDER.glob("*.spec")}
    assert found == expected, "run `make bpf`"


@pytest.mark.parametrize("kind", [kind for kind in FORMS if kind is not tuple])
def test_every_field_has_a_form(kind):
    assert len(FORMS[kind]) == len(kind._fields)


@pytest.mark.parametrize("cut", [0, 7, 19, 20, 200, -1])
def test_a_damaged_file_is_a_format_error(cut):
    with pytest.raises(FormatError, match="damaged"):
        unpack(objects.read("preemption.spec")[:cut])


def test_what_cannot_be_packed_is_refused():
    spec = objects.spec("preemption")
    function = spec.functions["ask"]._replace(jump_tables={"table": (0, 8)})
    with pytest.raises(ValueError, match=r"FunctionSpec has .*which is not packed"):
        pack(spec._replace(functions={"ask": function}))
    with pytest.raises(ValueError, match="only a spec with BTF of its own"):
        pack(spec._replace(btf=None))


def test_an_object_that_is_not_shipped():
    with pytest.raises(FileNotFoundError, match="nonesuch"):
        objects.spec("nonesuch")
