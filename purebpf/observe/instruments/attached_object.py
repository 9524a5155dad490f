"""Objects with stacks that another loader has loaded, found by their programs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from purebpf.btf.types.kinds import Datasec, Kind
from purebpf.btf.types.parse import Btf
from purebpf.closable import Closing
from purebpf.errors import LinkError, NotSupportedError
from purebpf.loader.load.globals import Globals
from purebpf.loader.load.object import Object
from purebpf.loader.maps.map import Map
from purebpf.loader.maps.map_pin import shape_differences
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.loader.types.map_btf import read_btf
from purebpf.observe.instruments.library_link import (
    DIGEST,
    LINKED_PREFIX,
    library_digest,
    library_spec,
    linked_library,
    linked_section,
)
from purebpf.spec import MapSpec, ObjectSpec, VariableSpec

__all__ = ["AttachedObject", "ProgramPlace", "open_attached"]

_KERNEL_NAME = 15
"""Characters of a map's name that the kernel keeps."""
_MAPS = ".maps"
_SOURCE = "stacks"


@runtime_checkable
class HasFileno(Protocol):
    """An object with a descriptor."""

    def fileno(self) -> int:
        """The number of the descriptor."""


ProgramPlace = int | str | os.PathLike[str] | HasFileno | Object
"""A program: its id, the path of its pin, or its descriptor; or all programs of an object."""


class AttachedObject(Closing):
    """The maps and programs of an object that another loader has loaded.

    Attributes:
        maps: by name; a map that this object's BTF does not name has the kernel's name for it.
        programs: by the kernel's name.
        globals: variables by name.
    """

    def __init__(
        self,
        maps: Mapping[str, Map],
        programs: Mapping[str, Program],
        variables: Iterable[Globals],
        owned: ExitStack,
    ) -> None:
        self.maps = maps
        self.programs = programs
        self.globals: MutableMapping[str, Any] = _Variables(tuple(variables))
        self._owned = owned

    def attach(self) -> tuple[Link, ...]:
        """Refuse: the other loader attaches the programs.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(
            "attaching the programs", "another loader has loaded them; attach them there"
        )

    def close(self) -> None:
        """Let go of the maps and programs; again is harmless."""
        self._owned.close()


class _Variables(MutableMapping[str, Any]):
    """The variables of several sections, each with types of its own."""

    def __init__(self, sections: tuple[Globals, ...]) -> None:
        self._sections = sections

    def _of(self, name: str) -> Globals:
        for section in self._sections:
            if name in section:
                return section
        raise KeyError(name)

    def __getitem__(self, name: str) -> Any:
        return self._of(name)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._of(name)[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("a global variable cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        for section in self._sections:
            yield from section

    def __len__(self) -> int:
        return sum(map(len, self._sections))


def open_attached(places: Iterable[ProgramPlace]) -> AttachedObject:
    """Open the maps of programs that another loader has loaded.

    Raises:
        LinkError: no program has the walk of stacks, or it is another version's.
        KernelError: there is no such program, or no right to open its maps.
    """
    with ExitStack() as owned:
        programs = [owned.enter_context(each) for place in places for each in _open_programs(place)]
        map_ids = dict.fromkeys(each for program in programs for each in program.info.map_ids)
        opened = [owned.enter_context(Map.from_id(each)) for each in map_ids]
        btf = _types_of(programs)
        library = linked_library(library_spec(1, (0, 0)))
        maps = _name_maps(opened, library, btf)
        variables = [_library_variables(library, maps)]
        variables += (
            owned.enter_context(each) for each in map(_variables_of, maps.values()) if each
        )
        owned.enter_context(variables[0])
        attached = AttachedObject(
            MappingProxyType(maps),
            MappingProxyType({program.name: program for program in programs}),
            variables,
            owned.pop_all(),
        )
    if attached.globals[LINKED_PREFIX + DIGEST] != library_digest():
        attached.close()
        problem = "another version of purebpf linked it; link it again with this one"
        raise LinkError(_SOURCE, "user_stack", problem)
    return attached


def _open_programs(place: ProgramPlace) -> Iterator[Program]:
    if isinstance(place, Object):
        for program in place.programs.values():
            yield Program.from_id(program.info.id)
    elif isinstance(place, int):
        yield Program.from_id(place)
    elif isinstance(place, str | os.PathLike):
        yield Program.open(place)
    else:
        yield Program.from_fd(place.fileno())


def _types_of(programs: Iterable[Program]) -> Btf | None:
    """Return the types of a program: libbpf gives all programs of an object the same ones."""
    ids = (program.info.btf_id for program in programs)
    return next((read_btf(btf_id) for btf_id in ids if btf_id), None)


def _name_maps(opened: Iterable[Map], library: ObjectSpec, btf: Btf | None) -> dict[str, Map]:
    """Return maps by their names in the object, with the types that the objects declare.

    Raises:
        LinkError: a map of the library is not among them, or is another version's.
    """
    full = {name[:_KERNEL_NAME]: name for name in _declared_maps(btf)}
    of_library = {
        (_kernel_name(spec_map), spec_map.type): spec_map for spec_map in library.maps.values()
    }
    named: dict[str, Map] = {}
    for each in opened:
        kernel_name = _section_of(each) or each.name
        spec_map = of_library.get((kernel_name, each.type))
        if spec_map is not None:
            if different := shape_differences(spec_map, each.info):
                problem = f"map {each.name} has {', '.join(different)}; link it again"
                raise LinkError(_SOURCE, "user_stack", problem)
            assert library.btf is not None
            named[spec_map.name] = each.retyped(spec_map, library.btf)
            continue
        name = full.get(kernel_name, kernel_name)
        named[name] = each if each.btf is not None or btf is None else _typed(each, name, btf)
        named[name].name = name
    if missing := library.maps.keys() - named.keys() - _UNUSED:
        problem = f"its programs do not have map {min(missing)}: purebpf.stacks.link() links it in"
        raise LinkError(_SOURCE, "user_stack", problem)
    return named


_UNUSED = frozenset({LINKED_PREFIX + "missed", LINKED_PREFIX + "live_files"})
"""Maps that the code of some modes does not mention."""


def _kernel_name(spec_map: MapSpec) -> str:
    if spec_map.section:
        return linked_section(spec_map.section)
    return spec_map.name[:_KERNEL_NAME]


def _section_of(each: Map) -> str:
    """Return the section whose variables a map has, or ""."""
    if each.btf is None or not each.value_type_id:
        return ""
    declared = each.btf.type(each.value_type_id)
    return declared.name if isinstance(declared, Datasec) else ""


def _declared_maps(btf: Btf | None) -> Iterator[str]:
    if btf is not None:
        for type_id in btf.find(_MAPS, Kind.DATASEC):
            section = btf.type(type_id)
            assert isinstance(section, Datasec)
            yield from (btf.name(entry.type_id) for entry in section.entries)


def _typed(each: Map, name: str, btf: Btf) -> Map:
    """Give the program's types to a map for which kernels take none, such as a ring."""
    info = each.info
    shape = MapSpec(name, info.type, info.key_size, info.value_size, info.max_entries)
    return each.retyped(shape, btf)


def _library_variables(library: ObjectSpec, maps: Mapping[str, Map]) -> Globals:
    of_library = {name: each for name, each in maps.items() if name in library.maps}
    return Globals(library, of_library)


def _variables_of(each: Map) -> Globals | None:
    """Return the variables in a map that has a section of the object, not the library's."""
    if not (section := _section_of(each)) or each.name.startswith(LINKED_PREFIX):
        return None
    assert each.btf is not None
    declared = each.btf.type(each.value_type_id)
    assert isinstance(declared, Datasec)
    variables = {}
    for entry in declared.entries:
        name = each.btf.name(entry.type_id)
        type_id = each.btf.type(entry.type_id).type_id  # type: ignore[union-attr] # a VAR
        variables[name] = VariableSpec(name, section, entry.offset, entry.size, type_id)
    spec = ObjectSpec(
        name=_SOURCE,
        source=_SOURCE,
        byteorder=each.btf.byteorder,
        license="",
        programs={},
        functions={},
        maps={section: MapSpec(section, each.type, 4, each.info.value_size, 1)},
        variables=variables,
        btf=each.btf,
    )
    return Globals(spec, {section: each})
