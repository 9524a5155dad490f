"""Fourth stage of a load: creates the maps, or opens those that are pinned, and fills them.

.rodata must be complete and frozen before the first program is loaded: the verifier then takes
its values for granted and removes the branches that they rule out (libbpf's order). Programs go
into PROG_ARRAYs last, when all of them exist.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import LinkError, NotSupportedError
from purebpf.loader.host.pins import make_directory, unpin
from purebpf.loader.load.prepare_spec import Prepared
from purebpf.loader.load.upload_result import Upload
from purebpf.loader.maps.map import Map
from purebpf.loader.maps.map_pin import shape_differences
from purebpf.loader.maps.map_traits import MAP_VALUES
from purebpf.relocate.linked_program import LinkedProgram
from purebpf.spec import MapSpec, ObjectSpec

__all__ = ["create_maps"]

_ARENA = bpf_map_type.BPF_MAP_TYPE_ARENA
_SLOT = 4
"""Bytes of a slot's number in a map of maps: an ARRAY_OF_MAPS index, a HASH_OF_MAPS int key."""

_BY_NAME = 1
"""LIBBPF_PIN_BY_NAME."""


def create_maps(
    prepared: Prepared,
    linked: Mapping[str, LinkedProgram],
    upload: Upload,
    *,
    pin_path: str,
    owned: ExitStack,
    pins: ExitStack,
) -> dict[str, Map]:
    """Every map of the object but those to leave out, in the object's order.

    Args:
        prepared: the object, and the maps that replace some of the object's.
        linked: the programs that a map may be exclusive to.
        upload: the object's BTF in the kernel.
        pin_path: where maps that ask to be pinned by name are, or go.
        owned: closes the maps.
        pins: removes the pins of this call, for a load that fails later.

    Raises:
        KernelError: a map was refused; says with which values.
        NotSupportedError: a map of that name is pinned, or given, and differs.
        LinkError: a static map-in-map refers to no map of the object.
    """
    spec = prepared.spec
    btf_fd = upload.descriptor.fd if upload.descriptor is not None else 0
    maps: dict[str, Map] = {}
    outer = [name for name, map_spec in spec.maps.items() if map_spec.type in MAP_VALUES]
    # Maps of maps come last: what they are to hold must be there.
    for name in [*(name for name in spec.maps if name not in outer), *outer]:
        declared = spec.maps[name]
        if name in prepared.given:
            created_map = _adopt(spec, declared, prepared.given[name])
        elif name in prepared.struct_ops:
            created_map = prepared.struct_ops[name].create(declared, btf_fd)
        elif not declared.autocreate:
            continue
        else:
            if declared.exclusive_to:
                declared = declared._replace(program_hash=linked[declared.exclusive_to].digest)
            if declared.pinning or declared.initial or declared.type == _ARENA:
                created_map = _create_with_more(
                    spec, declared, maps, btf_fd=btf_fd, pin_path=pin_path, pins=pins
                )
            else:
                created_map = Map.create(
                    declared, btf=spec.btf, btf_fd=btf_fd, object_name=spec.name
                )
        owned.callback(created_map.close)
        maps[name] = created_map
    return {name: maps[name] for name in spec.maps if name in maps}


def _adopt(spec: ObjectSpec, map_spec: MapSpec, given: Map) -> Map:
    """The same map again, if programs can use it as they were compiled to.

    How many entries it has, and its flags, are its maker's business.
    """
    if different := shape_differences(map_spec, given.info):
        raise NotSupportedError(
            f"map {given.name!r} as {map_spec.name!r}", f"it has {', '.join(different)}"
        )
    taken = Map.from_fd(given.fileno())
    if spec.btf is not None:
        taken = taken.retyped(map_spec, spec.btf)
    taken.frozen = given.frozen
    return taken


def _create_with_more(
    spec: ObjectSpec,
    map_spec: MapSpec,
    maps: Mapping[str, Map],
    *,
    btf_fd: int,
    pin_path: str,
    pins: ExitStack,
) -> Map:
    """Create a map with contents, in an arena or pinned; or open the one that is pinned already."""
    held: dict[int, Map] = {}
    if map_spec.type in MAP_VALUES:
        for slot, inner in map_spec.initial:
            if inner not in maps:
                raise LinkError(spec.source, inner, f"map {map_spec.name} should hold this map")
            held[slot] = maps[inner]
    created: list[Map] = []

    def complete(created_map: Map) -> None:
        if map_spec.type == _ARENA:
            created_map.arena.view[:0] = b""  # it must be somewhere before programs are verified
        for slot, inner in held.items():
            created_map.put(slot.to_bytes(_SLOT, sys.byteorder), inner)  # bytes: it may have no BTF
        created.append(created_map)

    if not map_spec.pinning:
        return Map.create(
            map_spec, btf=spec.btf, btf_fd=btf_fd, object_name=spec.name, complete=complete
        )
    if map_spec.pinning != _BY_NAME:
        raise NotSupportedError(
            f"{spec.source}: map {map_spec.name!r}",
            f"pinning is {map_spec.pinning}; known: 0 (not pinned) and 1 (by name)",
        )
    path = os.path.join(_pin_directory(pin_path, map_spec.pin_directory), map_spec.name)
    shared = Map.shared(
        map_spec, path, btf=spec.btf, btf_fd=btf_fd, object_name=spec.name, complete=complete
    )
    if shared in created:
        pins.callback(_unpin, shared)
    return shared


def _pin_directory(root: str, below: str) -> str:
    """Make the directory of a pin, and the directories above it, which few maps have."""
    path = root
    for part in filter(None, below.split("/")):
        make_directory(path)
        path = os.path.join(path, part)
    return path


def _unpin(created_map: Map) -> None:
    """Remove the pin of a map, as libbpf does (bpf_object_unpin), but no other file in its
    place.
    """
    if created_map.pinned is not None:
        with suppress(OSError):
            unpin(created_map.pinned)
