"""What iproute2's `struct bpf_elf_map` says behind the five fields of every map of its time.

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
from typing import NamedTuple

from purebpf.spec import MapSpec, ProgramSpec

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
    """A map, and the numbers by which others refer to it."""

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
    return [_to_spec(each, maps, object_digest) for each in maps]


def _to_spec(each: IprouteMap, maps: Sequence[IprouteMap], object_digest: str) -> MapSpec:
    spec = each.spec
    if each.pinning in (_OBJECT, _GLOBAL):
        place = "globals" if each.pinning == _GLOBAL else object_digest
        spec = spec._replace(pinning=1, pin_directory=f"tc/{place}")
    elif each.pinning:
        spec = spec._replace(pinning=each.pinning)
    if spec.type not in _OF_MAPS or not each.inner_id:
        return spec
    inner = [other for other in maps if other.id == each.inner_id and not other.inner_id]
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
        found = _TAIL_CALL.fullmatch(program.section)
        if found is None or (array := ids.get(int(found[1], 0))) is None:
            continue
        slots = dict(filled[array].initial) | {int(found[2], 0): name}
        filled[array] = filled[array]._replace(initial=tuple(sorted(slots.items())))
        typed[name] = program._replace(type=_SCHED_CLS)
    return filled, typed


def prog_arrays(maps: Sequence[IprouteMap]) -> dict[int, str]:
    """The names of PROG_ARRAYs by their id."""
    return {each.id: each.spec.name for each in maps if each.spec.type == _PROG_ARRAY}
