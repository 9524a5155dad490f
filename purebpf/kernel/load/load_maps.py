"""An object's maps: created or found pinned, and filled with what the file says they hold.

.rodata must be complete and frozen before the first program is loaded: the verifier then takes
its values for granted and removes the branches that they rule out (libbpf's order). Programs go
into PROG_ARRAYs last, when all of them exist.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import LinkError, NotSupportedError
from purebpf.kernel.host.pins import make_directory, unpin
from purebpf.kernel.maps.map import Map
from purebpf.kernel.maps.map_create import fitted
from purebpf.kernel.maps.map_traits import MAP_VALUES
from purebpf.kernel.programs.program import Program
from purebpf.spec import MapSpec, ObjectSpec

if TYPE_CHECKING:
    from purebpf.kernel.load.struct_ops import StructOpsMap
    from purebpf.relocate import Linker

__all__ = ["create_maps", "fill_program_arrays", "with_program_hashes"]

_SLOT = 4
"""Bytes of a slot's number in a map of maps: an ARRAY_OF_MAPS index, a HASH_OF_MAPS int key."""

_BY_NAME = 1
"""LIBBPF_PIN_BY_NAME."""


def create_maps(
    spec: ObjectSpec,
    btf_fd: int,
    pin_path: str,
    stack: ExitStack,
    *,
    undo: ExitStack,
    given: Mapping[str, Map],
    struct_ops: Mapping[str, StructOpsMap] = MappingProxyType({}),
) -> dict[str, Map]:
    """Every map of `spec` but those to leave out, owned by `stack`; `given` ones instead of new.

    `struct_ops` says how this kernel wants the maps of that kind. `undo` removes the pins that
    are made here, for a load that fails later.

    Raises:
        KernelError: a map was refused; says with which values.
        KeyError: a given map stands for none of the object's.
        NotSupportedError: a map of that name is pinned, or given, and differs.
        LinkError: a static map-in-map refers to no map of the object.
    """
    if unknown := given.keys() - spec.maps.keys():
        raise KeyError(f"{spec.source}: no map {', '.join(sorted(unknown))}")
    maps: dict[str, Map] = {}
    # Maps of maps come last: what they are to hold must be there.
    for name, each in sorted(spec.maps.items(), key=lambda item: item[1].type in MAP_VALUES):
        if name in given:
            maps[name] = stack.enter_context(_taken(spec, each, given[name]))
        elif name in struct_ops:
            maps[name] = stack.enter_context(struct_ops[name].create(each, btf_fd))
        elif each.autocreate:
            held = _held(spec, each, maps)
            maps[name] = stack.enter_context(_create(spec, each, btf_fd, pin_path, held, undo=undo))
    return {name: maps[name] for name in spec.maps if name in maps}


def with_program_hashes(spec: ObjectSpec, linker: Linker) -> ObjectSpec:
    """`spec`, whose maps know the programs that they are exclusive to by their instructions.

    Raises:
        LinkError: the object has no such program; or as `Linker.link`.
    """
    known = {}
    for name, each in spec.maps.items():
        if not each.exclusive_to:
            continue
        if each.exclusive_to not in spec.programs:
            problem = f"map {name} is exclusive to this program, which is not in the object"
            raise LinkError(spec.source, each.exclusive_to, problem)
        known[name] = each._replace(program_hash=linker.link(each.exclusive_to).digest)
    return spec._replace(maps={**spec.maps, **known}) if known else spec


def _taken(spec: ObjectSpec, each: MapSpec, given: Map) -> Map:
    """The same map again, if programs can use it as they were compiled to.

    How many entries it has, and its flags, are its maker's business.
    """
    found = (given.type, given.info.key_size, given.info.value_size)
    asked = fitted(each)
    if found != (asked.type, asked.key_size, asked.value_size):
        raise NotSupportedError(
            f"map {given.name!r} as {each.name!r}",
            f"it has type {found[0]}, keys of {found[1]} and values of {found[2]} bytes; the "
            f"object needs type {asked.type}, {asked.key_size} and {asked.value_size} bytes",
        )
    taken = Map.from_fd(given.fileno())
    if spec.btf is not None:
        taken = taken.retyped(each, spec.btf)
    taken.frozen = given.frozen
    return taken


def _held(spec: ObjectSpec, each: MapSpec, maps: Mapping[str, Map]) -> dict[int, Map]:
    """What a map of maps is to hold, by slot."""
    if each.type not in MAP_VALUES:
        return {}
    for _, inner in each.initial:
        if inner not in maps:
            raise LinkError(spec.source, inner, f"map {each.name} should hold this map")
    return {slot: maps[inner] for slot, inner in each.initial}


def _create(
    spec: ObjectSpec,
    each: MapSpec,
    btf_fd: int,
    pin_path: str,
    held: Mapping[int, Map],
    *,
    undo: ExitStack,
) -> Map:
    """A new map, or that which is pinned already, whose contents are its maker's business."""
    created: list[Map] = []

    def complete(made: Map) -> None:
        if each.type == bpf_map_type.BPF_MAP_TYPE_ARENA:
            made.arena.view[:0] = b""  # it must be somewhere before programs are verified
        for slot, inner in held.items():
            made.put(slot.to_bytes(_SLOT, sys.byteorder), inner)  # bytes: it may have no BTF
        created.append(made)

    if each.pinning:
        if each.pinning != _BY_NAME:
            raise NotSupportedError(
                f"{spec.source}: map {each.name!r}",
                f"pinning is {each.pinning}; known are 0 (not pinned) and 1 (by name)",
            )
        path = os.path.join(_pin_directory(pin_path, each.pin_directory), each.name)
        shared = Map.shared(
            each, path, btf=spec.btf, btf_fd=btf_fd, object_name=spec.name, complete=complete
        )
        if shared in created:
            undo.callback(_unpin, shared)
        return shared
    return Map.create(each, btf=spec.btf, btf_fd=btf_fd, object_name=spec.name, complete=complete)


def _pin_directory(root: str, below: str) -> str:
    """The directory of a pin; those between it and the root, which few maps have, are made."""
    path = root
    for part in filter(None, below.split("/")):
        make_directory(path)
        path = os.path.join(path, part)
    return path


def _unpin(made: Map) -> None:
    """Remove the pin of a map, as libbpf does (bpf_object_unpin); not what came in its place."""
    if made.pinned is not None:
        with suppress(OSError):
            unpin(made.pinned)


def fill_program_arrays(
    spec: ObjectSpec, maps: Mapping[str, Map], programs: Mapping[str, Program]
) -> None:
    """Put the programs that the file says into its PROG_ARRAYs; those not loaded stay out.

    Raises:
        KernelError: EINVAL, a program that differs in type from those which use the array.
    """
    for name, each in spec.maps.items():
        if each.type == bpf_map_type.BPF_MAP_TYPE_PROG_ARRAY and name in maps:
            for slot, program in each.initial:
                if program in programs:
                    maps[name].put(slot, programs[program])
