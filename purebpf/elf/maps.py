"""Maps declared in C: the variables of `.maps`; their struct types are the definitions.

`__uint(max_entries, 64)` is a pointer to an array of 64: the number is in the type. `__type(key,
int)` is a pointer to the type, `__array(values, ...)` an array of pointers to the type of the map's
values, and an initialiser of `values` leaves relocations in `.maps`. libbpf's parse_btf_map_def
decides which declarations are accepted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

from purebpf.btf.types.kinds import (
    Array,
    Datasec,
    Enum,
    Enum64,
    FuncProto,
    Fwd,
    Linkage,
    Member,
    Ptr,
    Struct,
    Var,
)
from purebpf.btf.types.parse import Btf
from purebpf.elf.btf_repair import Repaired
from purebpf.elf.container import ElfObject, Section
from purebpf.elf.functions import Functions
from purebpf.elf.relocations import RawRelocation
from purebpf.errors import FormatError, LinkError
from purebpf.spec import MapSpec, ProgramSpec
from purebpf.tuples import NamedTuple

MAPS = ".maps"

PROG_ARRAY = 3
ARRAY_OF_MAPS = 12
HASH_OF_MAPS = 13
_OF_MAPS = frozenset({ARRAY_OF_MAPS, HASH_OF_MAPS})
_SLOT = 8
_NUMBERS = {
    "type": "type",
    "max_entries": "max_entries",
    "map_flags": "flags",
    "numa_node": "numa_node",
    "key_size": "key_size",
    "value_size": "value_size",
    "pinning": "pinning",
    "map_extra": "map_extra",
}
"""Attributes that are numbers, and their names in a MapSpec."""


class PlacedMap(NamedTuple):
    """A map and its variable's place: `offset` in .maps, and `values` within the variable."""

    spec: MapSpec
    offset: int
    size: int
    values: int | None


def read_maps(types: Repaired | None, elf: ElfObject) -> tuple[PlacedMap, ...]:
    """The maps of `.maps`, by rising offset.

    Raises:
        FormatError: a definition that is not made of the attributes above, has data, or is
            static.
    """
    section = elf.find(MAPS)
    if section is None or not section.size:
        return ()
    if types is None or MAPS not in types.datasecs:
        raise elf.error(f"section {MAPS}", "has no BTF; compile with -g")
    datasec = types.btf.type(types.datasecs[MAPS])
    assert isinstance(datasec, Datasec)
    return tuple(_read_all(types.btf, elf, section, datasec))


def _read_all(btf: Btf, elf: ElfObject, section: Section, datasec: Datasec) -> Iterator[PlacedMap]:
    contents = bytes(elf.contents(section))
    zeros = len(contents) - len(contents.lstrip(b"\0"))
    for entry in datasec.entries:
        variable = btf.type(entry.type_id)
        if not isinstance(variable, Var):
            raise elf.error(f"section {MAPS}", f"BTF type {entry.type_id} is not a variable")
        where = f"map {variable.name}"
        if variable.linkage is not Linkage.GLOBAL:
            raise elf.error(where, f"is {variable.linkage.name.lower()}; maps are global variables")
        if entry.offset <= zeros < entry.offset + entry.size:
            raise elf.error(where, "its variable has contents; only `values` may be initialised")
        definition = _Definition(btf, elf, variable.name)
        spec = definition.read(btf.resolve(variable.type_id))
        yield PlacedMap(spec, entry.offset, entry.size, definition.values_offset)


class _Definition:
    """Reads one map's struct, member by member."""

    def __init__(self, btf: Btf, elf: ElfObject, name: str, *, inner: bool = False) -> None:
        self._btf = btf
        self._elf = elf
        self._name = name
        self._inner = inner
        self._found: dict[str, Any] = {}
        self._seen: set[str] = set()
        self.values_offset: int | None = None

    def _error(self, problem: str) -> FormatError:
        return self._elf.error(f"map {self._name}", problem)

    def read(self, type_id: int) -> MapSpec:
        """The definition that type `type_id` is."""
        definition = self._btf.type(type_id)
        if not isinstance(definition, Struct):
            raise self._error(f"is defined by a {definition.kind.name}, not by a STRUCT")
        for member in definition.members:
            if self.values_offset is not None:
                raise self._error("`values` is not the last attribute")
            if member.name in self._seen:
                raise self._error(f"attribute {member.name!r} occurs twice")
            self._seen.add(member.name)
            if member.name in _NUMBERS:
                self._set(_NUMBERS[member.name], self._number(member))
            elif member.name in {"key", "value"}:
                self._set_type(member)
            elif member.name == "values":
                self._set_values(member)
            else:
                raise self._error(f"unknown attribute {member.name!r}")
        if not self._found.get("type"):
            raise self._error("has no type")
        if self._inner and "pinning" in self._found:
            raise self._error("is the template of inner maps, which cannot be pinned")
        defaults = {"key_size": 0, "value_size": 0, "max_entries": 0}
        return MapSpec(name=self._name, **(defaults | self._found))

    def _set(self, attribute: str, value: int) -> None:
        if self._found.setdefault(attribute, value) != value:
            raise self._error(f"{attribute} is {self._found[attribute]}, and {value} too")

    def _number(self, member: Member) -> int:
        """The N of `int (*name)[N]`, or of `enum { unique = N } name`."""
        btf_type = self._btf.type(self._btf.resolve(member.type_id))
        if isinstance(btf_type, Enum | Enum64) and len(btf_type.values) == 1:
            value = btf_type.values[0].value
            return value if member.name == "map_extra" else value & 0xFFFFFFFF
        if isinstance(btf_type, Ptr):
            array = self._btf.type(self._btf.resolve(btf_type.type_id))
            if isinstance(array, Array):
                return array.count
        raise self._error(
            f"attribute {member.name!r} is not a number; write __uint({member.name}, N)"
        )

    def _set_type(self, member: Member) -> None:
        """The T of `typeof(T) *name`."""
        pointer = self._btf.type(self._btf.resolve(member.type_id))
        if not isinstance(pointer, Ptr):
            raise self._error(
                f"attribute {member.name!r} is not a type; use __type({member.name}, T)"
            )
        declared = self._btf.type(self._btf.resolve(pointer.type_id))
        if isinstance(declared, Fwd):
            name = f"{'union' if declared.is_union else 'struct'} {declared.name}"
            raise self._error(
                f"its {member.name} is {name}, which BTF only declares; if the C defines it, clang "
                f"keeps it with: const {name} *unused __attribute__((unused));"
            )
        try:
            size = self._btf.sizeof(pointer.type_id)
        except FormatError as error:
            raise self._error(f"{member.name}: {error.where} {error.problem}") from None
        self._set(f"{member.name}_size", size)
        self._set(f"{member.name}_type_id", pointer.type_id)

    def _set_values(self, member: Member) -> None:
        """Read `typeof(V) *values[]`: V is the definition of inner maps, or a function."""
        kind = self._found.get("type")
        if self._inner or (kind not in _OF_MAPS and kind != PROG_ARRAY):
            raise self._error("`values` belongs to a map of maps or to a PROG_ARRAY")
        array = self._btf.type(self._btf.resolve(member.type_id))
        pointer = self._pointee(array.element) if isinstance(array, Array) else None
        if not isinstance(pointer, Ptr):
            raise self._error("`values` is not an array of pointers; use __array(values, ...)")
        self._set("value_size", 4)
        self.values_offset = member.bit_offset // 8
        target = self._btf.resolve(pointer.type_id)
        if kind in _OF_MAPS:
            inner = _Definition(self._btf, self._elf, f"{self._name}.inner", inner=True)
            self._found["inner"] = inner.read(target)
        elif not isinstance(self._btf.type(target), FuncProto):
            raise self._error("`values` of a PROG_ARRAY is not an array of functions")

    def _pointee(self, type_id: int) -> object:
        return self._btf.type(self._btf.resolve(type_id))


def with_contents(
    maps: tuple[PlacedMap, ...],
    raw: list[RawRelocation],
    elf: ElfObject,
    functions: Functions,
    programs: Mapping[str, ProgramSpec],
) -> dict[str, MapSpec]:
    """The maps by name, with the static contents that the relocations `raw` of .maps describe.

    As in libbpf, their type does not matter: clang 12 and older write R_BPF_64_64, newer ones
    R_BPF_64_ABS64.

    Raises:
        FormatError: a relocation outside of any map's `values`.
        LinkError: the slot gets a value other than a map or program.
    """
    specs = {placed.spec.name: placed.spec for placed in maps}
    names = {placed.offset: placed.spec.name for placed in maps}
    section = elf.find(MAPS)
    initial: dict[str, dict[int, str]] = {}
    for relocation in raw:
        placed, slot = _slot(maps, relocation, elf)
        symbol = relocation.symbol
        target: str | None = None
        if placed.spec.type == PROG_ARRAY:
            function = functions.at(symbol.section, symbol.value)
            if function is not None and function.key in programs:
                target = function.key
        elif section is not None and symbol.section == section.number:
            target = names.get(symbol.value)
        if target is None:
            what = "program" if placed.spec.type == PROG_ARRAY else "map"
            problem = f"slot {slot} of {placed.spec.name} needs a {what}, which this is not"
            raise LinkError(elf.source, symbol.name or "a nameless symbol", problem)
        initial.setdefault(placed.spec.name, {})[slot] = target
    for name, slots in initial.items():
        specs[name] = specs[name]._replace(initial=tuple(sorted(slots.items())))
    return specs


def _slot(
    maps: tuple[PlacedMap, ...], relocation: RawRelocation, elf: ElfObject
) -> tuple[PlacedMap, int]:
    """The map and the slot that a relocation of .maps initialises."""
    where = f"section {MAPS}+{relocation.offset:#x}"
    index = bisect_right(maps, relocation.offset, key=attrgetter("offset")) - 1
    placed = maps[index] if index >= 0 else None
    if placed is None or relocation.offset + _SLOT > placed.offset + placed.size:
        raise elf.error(where, "relocation outside of every map")
    if placed.values is None:
        raise elf.error(where, f"map {placed.spec.name} does not have `values` to initialise")
    slot, rest = divmod(relocation.offset - placed.offset - placed.values, _SLOT)
    if slot < 0 or rest:
        raise elf.error(where, f"is not a slot of {placed.spec.name}")
    if placed.spec.type == HASH_OF_MAPS and placed.spec.key_size != 4:
        raise elf.error(where, "a HASH_OF_MAPS with contents has 4-byte keys")
    return placed, slot
