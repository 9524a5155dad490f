"""iproute2's `struct bpf_elf_map`: its additions to the five fields of a legacy map.

A map may have an `id`, by which a map of maps names its template (`inner_id`), and of which a
program in section `ID/SLOT` is a tail call; `inner_idx` is a map's slot in that map of maps.
`pinning` 2 is "for everybody" (`tc/globals/NAME` below the bpf file system), 1 "for this object"
(`tc/SHA1/NAME`, of the file); other numbers are of /etc/iproute2/bpf_pinning.
Source: iproute2, include/bpf_elf.h and lib/bpf_legacy.c; there is no other description.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence

from purebpf.spec import MapSpec, ProgramSpec
from purebpf.tuples import NamedTuple

__all__ = [
    "EXTRA_SIZE",
    "IprouteMap",
    "prog_arrays",
    "read_extra",
    "resolve_maps",
    "with_tail_calls",
]

_EXTRA = "4I"
EXTRA_SIZE = 16
"""Bytes of id, pinning, inner_id and inner_idx."""

_PROG_ARRAY = 3
_OF_MAPS = frozenset({12, 13})
_OBJECT, _GLOBAL = 1, 2
_NO_SLOT = 0xFFFFFFFF
_SCHED_CLS = 3
"""What tc takes programs of such sections for, unless it gets `action`."""

_TAIL_CALL = re.compile(r"(\d+|0x[0-9a-fA-F]+)/(\d+|0x[0-9a-fA-F]+)")


class IprouteMap(NamedTuple):
    """A map, and the numbers that others refer to it by."""

    spec: MapSpec
    id: int
    pinning: int
    inner_id: int
    inner_idx: int


def read_extra(prefix: str, spec: MapSpec, extra: bytes) -> IprouteMap:
    """A map and the EXTRA_SIZE bytes behind its five fields; `prefix` is of the byte order."""
    return IprouteMap(spec, *struct.unpack(prefix + _EXTRA, extra))


def resolve_maps(maps: Sequence[IprouteMap], object_digest: str) -> list[MapSpec]:
    """The maps, which know their templates, static contents and pins."""
    return [_to_spec(iproute_map, maps, object_digest) for iproute_map in maps]


def _to_spec(iproute_map: IprouteMap, maps: Sequence[IprouteMap], object_digest: str) -> MapSpec:
    spec = iproute_map.spec
    if iproute_map.pinning in (_OBJECT, _GLOBAL):
        place = "globals" if iproute_map.pinning == _GLOBAL else object_digest
        spec = spec._replace(pinning=1, pin_directory=f"tc/{place}")
    elif iproute_map.pinning:
        spec = spec._replace(pinning=iproute_map.pinning)
    if spec.type not in _OF_MAPS or not iproute_map.inner_id:
        return spec
    inner = [other for other in maps if other.id == iproute_map.inner_id and not other.inner_id]
    if not inner:
        return spec
    template = inner[0].spec._replace(name=f"{spec.name}.inner")
    slots = {other.inner_idx: other.spec.name for other in inner if other.inner_idx != _NO_SLOT}
    return spec._replace(inner=template, initial=tuple(sorted(slots.items())))


def with_tail_calls(
    maps: Mapping[str, MapSpec], ids: Mapping[int, str], programs: Mapping[str, ProgramSpec]
) -> tuple[dict[str, MapSpec], dict[str, ProgramSpec]]:
    """The maps with the programs of sections `ID/SLOT` in them, and all programs, with types.

    `ids` are the names of PROG_ARRAYs by their `id`.
    """
    filled, typed = dict(maps), dict(programs)
    for name, program in programs.items():
        tail_call = _TAIL_CALL.fullmatch(program.section)
        if tail_call is None or (array := ids.get(int(tail_call[1], 0))) is None:
            continue
        slots = dict(filled[array].initial) | {int(tail_call[2], 0): name}
        filled[array] = filled[array]._replace(initial=tuple(sorted(slots.items())))
        typed[name] = program._replace(type=_SCHED_CLS)
    return filled, typed


def prog_arrays(maps: Sequence[IprouteMap]) -> dict[int, str]:
    """The names of PROG_ARRAYs by their id."""
    return {
        iproute_map.id: iproute_map.spec.name
        for iproute_map in maps
        if iproute_map.spec.type == _PROG_ARRAY
    }
