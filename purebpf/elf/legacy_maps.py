"""Maps of before libbpf 1.0: records of numbers in a section `maps`, one a map, without BTF.

`struct bpf_map_def` has five fields; iproute2's `struct bpf_elf_map` and others have more behind
them. All maps of a section have the same size, which the file does not state: the section's size
divided by its number of symbols. Records of iproute2's size have a decoder
(`purebpf.elf.iproute2`); `load` refuses other fields behind the five (cilium/ebpf's rule) unless
they are zero.

The types of keys and values may be in BTF all the same: `BPF_ANNOTATE_KV_PAIR(name, key, value)`
defined a `struct ____btf_map_name` with members of these types.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from purebpf.btf.types.kinds import Kind, Struct
from purebpf.btf.types.parse import Btf
from purebpf.elf.container import STB_LOCAL, STT_SECTION, ElfObject, Section, Symbol
from purebpf.elf.iproute2 import (
    EXTRA_SIZE,
    IprouteMap,
    prog_arrays,
    read_extra,
    resolve_maps,
    with_tail_calls,
)
from purebpf.errors import FormatError
from purebpf.spec import MapSpec, ProgramSpec
from purebpf.tuples import NamedTuple

__all__ = ["LegacyMaps", "read_legacy_maps"]

_SECTION = "maps"
_FIELDS = 5
_LEAST = 16
"""Bytes without map_flags, which came with Linux 4.6 (commit 6c9059817432)."""
_KNOWN = 4 * _FIELDS
_ANNOTATION = "____btf_map_"


class LegacyMaps(NamedTuple):
    """The maps by name; the name by section number and offset; PROG_ARRAYs of iproute2 by id."""

    maps: Mapping[str, MapSpec]
    places: Mapping[tuple[int, int], str]
    ids: Mapping[int, str]

    def with_tail_calls(
        self, programs: dict[str, ProgramSpec]
    ) -> tuple[Mapping[str, MapSpec], dict[str, ProgramSpec]]:
        """Return the maps and all programs; the programs of sections `ID/SLOT` are in iproute2's
        PROG_ARRAYs.
        """
        return with_tail_calls(self.maps, self.ids, programs) if self.ids else (self.maps, programs)


def read_legacy_maps(elf: ElfObject, btf: Btf | None) -> LegacyMaps:
    """The maps of sections `maps` and `maps/...`.

    Raises:
        FormatError: definitions that do not share their section evenly, or are static.
    """
    maps: dict[str, MapSpec] = {}
    places: dict[tuple[int, int], str] = {}
    extended: list[IprouteMap] = []
    for section in elf.sections:
        if section.size and (section.name == _SECTION or section.name.startswith(f"{_SECTION}/")):
            for symbol, data in _definitions(elf, section):
                places[section.number, symbol.value] = symbol.name
                maps[symbol.name] = spec = _map(elf, symbol.name, data, btf)
                if len(data) == _KNOWN + EXTRA_SIZE:
                    plain = spec._replace(extra=b"")
                    extended.append(read_extra(elf.prefix, plain, data[_KNOWN:]))
    if extended:
        maps |= {spec.name: spec for spec in resolve_maps(extended, elf.digest())}
    return LegacyMaps(maps, places, prog_arrays(extended))


def _definitions(elf: ElfObject, section: Section) -> Iterator[tuple[Symbol, bytes]]:
    """Each map's symbol and bytes, by rising offset."""
    symbols = sorted(
        (s for s in elf.symbols if s.section == section.number and s.type != STT_SECTION),
        key=lambda symbol: symbol.value,
    )
    size, rest = divmod(section.size, len(symbols) or 1)
    if not symbols or rest or size < _LEAST:
        problem = f"{section.size} bytes do not make {len(symbols)} maps of the same size"
        raise elf.error(f"section {section.name}", problem)
    contents = bytes(elf.contents(section))
    for number, symbol in enumerate(symbols):
        if symbol.binding == STB_LOCAL:
            raise elf.error(f"map {symbol.name}", "is static; maps are global variables")
        if symbol.value != number * size:
            problem = f"is at {symbol.value}, but maps are {size} bytes apart"
            raise elf.error(f"map {symbol.name}", problem)
        yield symbol, contents[symbol.value : symbol.value + size]


def _map(elf: ElfObject, name: str, data: bytes, btf: Btf | None) -> MapSpec:
    layout = f"{elf.prefix}{_FIELDS}I"
    kind, key_size, value_size, entries, flags = struct.unpack_from(
        layout, data.ljust(_KNOWN, b"\0")
    )
    extra = data[_KNOWN:] if any(data[_KNOWN:]) else b""
    spec = MapSpec(name, kind, key_size, value_size, entries, flags, extra=extra)
    if btf is None:
        return spec
    key, value = _find_types(btf, spec)
    return spec._replace(key_type_id=key, value_type_id=value)


def _find_types(btf: Btf, spec: MapSpec) -> tuple[int, int]:
    """The types of a map's key and value, if BTF has some of the right sizes; else (0, 0)."""
    for type_id in btf.find(f"{_ANNOTATION}{spec.name}", Kind.STRUCT):
        annotation = btf.type(type_id)
        if isinstance(annotation, Struct) and len(annotation.members) == 2:
            key, value = (member.type_id for member in annotation.members)
            try:
                sizes = btf.sizeof(key), btf.sizeof(value)
            except FormatError:  # no map has a member without a size
                continue
            if sizes == (spec.key_size, spec.value_size):
                return key, value
    return 0, 0
