"""Global variables in the object's arena: the section `.addr_space.1` (`__arena` variables).

The object has one arena at most (Linux 6.9, commit 317460317a02). Where in it the variables are,
`load` decides: their offsets count from the first byte of the section.
Source: libbpf, init_arena_map_data.
"""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.elf.btf_repair import Repaired
from purebpf.elf.container import ElfObject
from purebpf.elf.data import variables_in
from purebpf.elf.maps import PlacedMap
from purebpf.spec import MapSpec, VariableSpec
from purebpf.tuples import NamedTuple

__all__ = ["Arena", "read_arena"]

ARENA = 33
_SECTION = ".addr_space.1"


class Arena(NamedTuple):
    """The arena's name by the index of its variables' section, their image, and the variables."""

    sections: dict[int, str]
    contents: bytes
    variables: dict[str, VariableSpec]

    def fill(self, maps: tuple[PlacedMap, ...]) -> tuple[PlacedMap, ...]:
        """Return the maps, with the contents of the arena."""
        names = set(self.sections.values())
        return tuple(
            elf_map._replace(spec=elf_map.spec._replace(contents=self.contents))
            if elf_map.spec.name in names
            else elf_map
            for elf_map in maps
        )


def read_arena(types: Repaired | None, elf: ElfObject, maps: Sequence[MapSpec]) -> Arena:
    """The variables in the arena, which is one of `maps`.

    Raises:
        FormatError: variables and no arena, or two arenas.
    """
    arenas = [elf_map for elf_map in maps if elf_map.type == ARENA]
    if len(arenas) > 1:
        names = " and ".join(arena.name for arena in arenas)
        raise elf.error("section .maps", f"{names} are arenas; a program can have one")
    section = elf.find(_SECTION)
    if section is None or not section.size:
        return Arena({}, b"", {})
    where = f"section {_SECTION}"
    if not arenas:
        raise elf.error(where, "holds arena variables, but the object has no arena map")
    _, declared = variables_in(types, _SECTION)
    name = arenas[0].name
    variables = {variable.name: variable._replace(map=name) for variable in declared}
    return Arena({section.number: name}, bytes(elf.contents(section)), variables)
