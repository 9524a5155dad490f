"""Pack what `read_object` makes of the shipped objects, as data that needs no ELF reader.

    python scripts/generate_specs.py            write purebpf/objects/NAME.spec
    python scripts/generate_specs.py --check    compare with what is there

A command starts from these files: reading its object anew costs a few milliseconds at every start
(docs/design/0002-start.md). `purebpf inspect NAME.spec` shows one. `make bpf` runs this after the
build; `purebpf/objects/packed.py` describes and reads the form.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from purebpf.elf import read_object
from purebpf.objects.packed import FORMS, KINDS, MAGIC, NONE, SIZES, children_of
from purebpf.spec import ExternSpec, FunctionSpec, MapSpec, ObjectSpec, ProgramSpec, VariableSpec

OBJECTS = Path(__file__).resolve().parent.parent / "purebpf" / "objects"
_SUFFIX = ".bpf.o"


def pack(spec: ObjectSpec) -> bytes:
    """Pack a spec.

    Raises:
        ValueError: it has what no shipped object has: jump tables, split BTF.
    """
    if spec.btf is None or spec.btf.base is not None:
        raise ValueError(f"{spec.source}: only a spec with BTF of its own can be packed")
    packer = _Packer()
    packer.row("ssss", spec[:4])
    packer.row("bs", (spec.btf.data, spec.btf.source))
    packer.table(ProgramSpec, spec.programs.values(), spec.programs)
    packer.table(FunctionSpec, spec.functions.values(), spec.functions)
    inner = {name: map_spec.inner for name, map_spec in spec.maps.items() if map_spec.inner}
    packer.table(
        MapSpec, [map_spec._replace(inner=None) for map_spec in spec.maps.values()], spec.maps
    )
    packer.table(VariableSpec, spec.variables.values(), spec.variables)
    packer.table(ExternSpec, spec.externs.values(), spec.externs)
    if inner:
        packer.table(MapSpec, inner.values(), inner)
    return packer.data()


class _Packer:
    """Collects strings, numbers and bytes."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._numbers: list[int] = []
        self._blobs: dict[bytes, int] = {}

    def row(self, form: str, values: Iterable[Any]) -> None:
        self._numbers += [self._number(*field) for field in zip(form, values, strict=True)]

    def table(self, kind: type, rows: Iterable[Any], keys: Iterable[str] = ()) -> None:
        """Columns, keys first where the rows have keys, then the tables that the rows refer to."""
        rows = list(rows)
        form = FORMS[kind]
        self._numbers.append(len(rows))
        self._numbers += [self._number("s", key) for key in keys]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(form)
        for letter, column in zip(form, columns, strict=True):
            if letter == "-" and any(column):
                raise ValueError(f"a {kind.__name__} has {column}, which is not packed")
            if letter != "-":
                self._numbers += [self._number(letter, value) for value in column]
        for child, column in zip(children_of(kind), _counted(form, columns), strict=True):
            self.table(child, list(chain.from_iterable(column)))

    def data(self) -> bytes:
        """The file."""
        strings = "".join(f"{text}\0" for text in self._strings).encode()
        lengths = [len(self._blobs), *map(len, self._blobs)]
        numbers = struct.pack(f"<{len(lengths) + len(self._numbers)}q", *lengths, *self._numbers)
        blobs = b"".join(self._blobs)
        sizes = SIZES.pack(len(strings), len(numbers), len(blobs))
        return b"".join((MAGIC, sizes, strings, numbers, blobs))

    def _number(self, letter: str, value: Any) -> int:
        if letter == "s":
            return self._strings.setdefault(value, len(self._strings))
        if letter == "b":
            return self._blobs.setdefault(bytes(value), len(self._blobs))
        if letter == "k":
            return KINDS.index(value)
        if letter == "#":
            return len(value)
        return NONE if value is None else int(value)


def _counted(form: str, columns: Sequence[Any]) -> list[Any]:
    return [column for letter, column in zip(form, columns, strict=True) if letter == "#"]


class Shipped(NamedTuple):
    """A packed spec: where it is, and what it should hold."""

    path: Path
    data: bytes


def shipped() -> list[Shipped]:
    """The packed spec of each object, in the order of their names."""
    return [_pack_object(path) for path in sorted(OBJECTS.glob(f"*{_SUFFIX}"))]


def _pack_object(path: Path) -> Shipped:
    name = path.name.removesuffix(_SUFFIX)
    spec = read_object(path.read_bytes())._replace(name=name, source=path.name)
    if spec.btf is not None:
        spec.btf.source = f"{path.name} .BTF"
    return Shipped(path.with_name(f"{name}.spec"), pack(spec))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and change nothing")
    check = parser.parse_args().check
    stale = [
        shipped_spec
        for shipped_spec in shipped()
        if not shipped_spec.path.exists() or shipped_spec.path.read_bytes() != shipped_spec.data
    ]
    for path, data in stale:
        if check:
            print(f"{path.name} is not what read_object makes of its object: run `make bpf`")
        else:
            path.write_bytes(data)
            print(f"{path.name}: written")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
