"""The BTF of an object file: the types of a spec, with the declarations that loaders read.

A spec holds BTF as the kernel takes it. libbpf and cilium/ebpf need more: a variable for each map
whose type describes the map, sections of variables under the names that the file has, and externs
that are declared as such. Ids stay the same, so that functions, lines and CO-RE relocations keep
their types. Source: libbpf, parse_btf_map_def() and bpf_object__collect_externs().
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.types.kinds import (
    Array,
    Datasec,
    DatasecEntry,
    Func,
    Int,
    Kind,
    Linkage,
    Member,
    Ptr,
    Struct,
    Type,
    Typedef,
    Var,
)
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.write import write_btf
from purebpf.spec import ExternSpec, MapSpec, ObjectSpec, VariableSpec

__all__ = ["MAPS", "ObjectTypes"]

MAPS = ".maps"
_KSYMS = ".ksyms"
_FIELD = 8
"""Bytes of a member of a map's declaration: each is a pointer."""
_OF_RECORDS = (
    bpf_map_type.BPF_MAP_TYPE_RINGBUF,
    bpf_map_type.BPF_MAP_TYPE_PERF_EVENT_ARRAY,
    bpf_map_type.BPF_MAP_TYPE_USER_RINGBUF,
)
"""Types of maps whose declared value is the type of their records, which kernels refuse."""


class ObjectTypes:
    """The types of an object file, by id.

    Args:
        spec: the object.
        btf: its BTF.

    Attributes:
        places: the offset of each map in the section `.maps`.
        maps_size: bytes of that section.
    """

    def __init__(self, spec: ObjectSpec, btf: Btf) -> None:
        self._spec = spec
        self._btf = btf
        self._types: list[Type] = [btf.type(number) for number in range(1, len(btf))]
        self._without_sections()
        self._int = self._add(Int("int", 4, 32, 0, signed=True, is_char=False, is_bool=False))
        self.places: dict[str, int] = {}
        self.maps_size = 0
        self._declare_maps()
        for spec_map in spec.maps.values():
            if spec_map.section and spec_map.value_type_id:
                self._declare_section(spec_map)
        self._declare_externs()

    def write(self, texts: Iterable[str]) -> tuple[bytes, Mapping[str, int]]:
        """Return the section .BTF, and the offsets of further strings in it."""
        data = bytearray(write_btf(self._types, "<" if self._btf.byteorder == "little" else ">"))
        order = self._btf.byteorder
        size = int.from_bytes(data[20:24], order)
        offsets: dict[str, int] = {"": 0}
        for text in texts:
            if text not in offsets:
                offsets[text] = size
                encoded = text.encode("utf-8", "surrogateescape") + b"\0"
                data += encoded
                size += len(encoded)
        data[20:24] = size.to_bytes(4, order)
        return bytes(data), offsets

    def _add(self, added: Type) -> int:
        self._types.append(added)
        return len(self._types)

    def _without_sections(self) -> None:
        """Replace sections of variables, which are declared anew, by types that mean nothing."""
        for index, each in enumerate(self._types):
            if isinstance(each, Datasec):
                self._types[index] = Typedef("purebpf_no_section", 0)

    # Maps

    def _declare_maps(self) -> None:
        entries = []
        for spec_map in self._spec.maps.values():
            if spec_map.section:
                continue
            struct, size = self._describe(spec_map)
            variable = self._add(Var(spec_map.name, struct, Linkage.GLOBAL))
            entries.append(DatasecEntry(variable, self.maps_size, size))
            self.places[spec_map.name] = self.maps_size
            self.maps_size += size
            self._anchor_records(spec_map)
        if entries:
            self._add(Datasec(MAPS, self.maps_size, tuple(entries)))

    def _describe(self, spec_map: MapSpec) -> tuple[int, int]:
        """Declare the type of a map's variable: its id and size."""
        members = [*self._fields(spec_map)]
        size = _FIELD * len(members)
        if spec_map.inner is not None:  # `values` is an array without elements, behind all else
            inner = self._add(Ptr(self._describe(spec_map.inner)[0]))
            members.append(("values", self._add(Array(inner, self._int, 0))))
        placed = (
            Member(name, type_id, 8 * _FIELD * index, 0)
            for index, (name, type_id) in enumerate(members)
        )
        return self._add(Struct("", size, tuple(placed))), size

    def _fields(self, spec_map: MapSpec) -> Iterator[tuple[str, int]]:
        numbers = {
            "type": spec_map.type,
            "max_entries": spec_map.max_entries,
            "map_flags": spec_map.flags,
            "map_extra": spec_map.map_extra,
            "numa_node": spec_map.numa_node or 0,
            "pinning": spec_map.pinning,
        }
        for name, number in numbers.items():
            if number or name == "type":
                yield name, self._number(number)
        if spec_map.type in _OF_RECORDS[::2]:
            return
        if spec_map.key_type_id:
            yield "key", self._add(Ptr(spec_map.key_type_id))
        elif spec_map.key_size:
            yield "key_size", self._number(spec_map.key_size)
        if spec_map.value_type_id and spec_map.type not in _OF_RECORDS and spec_map.inner is None:
            yield "value", self._add(Ptr(spec_map.value_type_id))
        elif spec_map.value_size:
            yield "value_size", self._number(spec_map.value_size)

    def _number(self, number: int) -> int:
        """`int (*)[number]`, as __uint() of bpf_helpers.h declares a number."""
        return self._add(Ptr(self._add(Array(self._int, self._int, number))))

    def _anchor_records(self, spec_map: MapSpec) -> None:
        """Name the type of the records by a variable: purebpf/loader/rings/record_types.py."""
        name = f"{spec_map.name}_record"
        is_there = any(isinstance(each, Var) and each.name == name for each in self._types)
        if spec_map.type in _OF_RECORDS and spec_map.value_type_id and not is_there:
            self._add(Var(name, self._add(Ptr(spec_map.value_type_id)), Linkage.STATIC))

    # Variables

    def _declare_section(self, spec_map: MapSpec) -> None:
        """Declare a section of variables, under the names that the spec gives them."""
        section = self._btf.type(spec_map.value_type_id)
        assert isinstance(section, Datasec)
        known = {
            variable.offset: variable
            for variable in self._spec.variables.values()
            if variable.map == spec_map.name
        }
        if spec_map.section != ".kconfig":
            for entry in section.entries:
                self._rename(entry, known)
            self._add(Datasec(spec_map.section, spec_map.value_size, section.entries))

    def _rename(self, entry: DatasecEntry, known: Mapping[int, VariableSpec]) -> None:
        variable = self._types[entry.type_id - 1]
        assert isinstance(variable, Var)
        if variable.linkage is not Linkage.STATIC:
            name = known[entry.offset].name
            self._types[entry.type_id - 1] = variable._replace(name=name)

    def _declare_externs(self) -> None:
        """Declare kernel symbols and configuration values as externs, by section."""
        sections: dict[str, list[DatasecEntry]] = {}
        for extern in self._spec.externs.values():
            entries = sections.setdefault(extern.section, [])
            entries.append(DatasecEntry(self._extern(extern), 0, self._extern_size(extern)))
        for name, entries in sections.items():
            self._add(Datasec(name, 0, tuple(entries)))

    def _extern(self, extern: ExternSpec) -> int:
        declared = self._btf.type(extern.type_id)
        if isinstance(declared, Func):
            self._types[extern.type_id - 1] = declared._replace(linkage=Linkage.EXTERN)
            return extern.type_id
        for variable in self._btf.find(extern.name, Kind.VAR):  # not an extern to the kernel
            self._types[variable - 1] = Typedef("purebpf_no_variable", 0)
        return self._add(Var(extern.name, extern.type_id, Linkage.EXTERN))

    def _extern_size(self, extern: ExternSpec) -> int:
        if extern.section == _KSYMS:
            return 0
        return self._btf.sizeof(extern.type_id)
