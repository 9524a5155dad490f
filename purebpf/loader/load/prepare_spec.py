"""First stage of a load: resolves the object on this kernel; creates nothing.

Most objects need none of this; each part is imported for those that do.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import NotSupportedError
from purebpf.similar import unknown_name
from purebpf.spec import ObjectSpec
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.loader.load.arg_ctx import Copies
    from purebpf.loader.load.kernel_types import KernelTypes
    from purebpf.loader.load.struct_ops import StructOpsMap
    from purebpf.loader.maps.map import Map
    from purebpf.loader.programs.attach_target import AttachTarget
    from purebpf.loader.programs.program import Program

__all__ = ["Prepared", "prepare_spec"]

_ARENA = bpf_map_type.BPF_MAP_TYPE_ARENA
_STRUCT_OPS = bpf_map_type.BPF_MAP_TYPE_STRUCT_OPS
_CONTEXT_TAG = b"\0arg:ctx\0"
_KCONFIG = ".kconfig"
_NO_COPIES: Copies = MappingProxyType({})
_MANY = "tracing_multi"


class Prepared(NamedTuple):
    """An object as this kernel is to get it.

    Attributes:
        spec: the object, with configuration values, the place of its arena's variables, and the
            struct_ops programs to load that are members of a map.
        given: maps that replace the object's maps with these names.
        struct_ops: the struct_ops maps to create, as this kernel has their structs.
        attach_targets: by program, the type or function that the verifier checks it against.
        btf: the object's types as they are uploaded, or None.
        copies: by type of program, functions that have a copy in `btf` to be named instead.
    """

    spec: ObjectSpec
    given: Mapping[str, Map]
    struct_ops: Mapping[str, StructOpsMap]
    attach_targets: Mapping[str, AttachTarget]
    btf: Btf | None
    copies: Copies


def prepare_spec(
    spec: ObjectSpec,
    types: KernelTypes,
    *,
    kconfig: str,
    given: Mapping[str, Map],
    replaced: Mapping[str, Program],
) -> Prepared:
    """Fit an object to this kernel.

    Args:
        spec: the object.
        types: this kernel's types, modules included.
        kconfig: lines of a .config that win over this kernel's.
        given: maps that replace the object's maps with these names.
        replaced: for programs of these names, the loaded program that has the function they replace
            or watch.

    Raises:
        NotSupportedError: another byte order; a configuration value, a struct of struct_ops or a
            function that this kernel does not have.
        SchemaError: a configuration value that its extern's type does not take.
        KeyError: the object has no such map or program.
        KernelError: EPERM, for a symbol that only a module has, without CAP_SYS_ADMIN.
    """
    if spec.byteorder != sys.byteorder:
        reason = f"its code is {spec.byteorder}-endian, but this machine is {sys.byteorder}-endian"
        raise NotSupportedError(f"loading {spec.source}", reason)
    if unknown := given.keys() - spec.maps.keys():
        raise unknown_name(spec.maps, min(unknown), f"{spec.source}: unknown map")
    if unknown := replaced.keys() - spec.programs.keys():
        raise unknown_name(spec.programs, min(unknown), f"{spec.source}: unknown program")
    if _KCONFIG in spec.maps:
        from purebpf.loader.load.kconfig import configure

        spec = configure(spec, kconfig)
    elif kconfig:
        from purebpf.relocate.kconfig import check_lines

        check_lines(kconfig)
    map_types = {map_spec.type for map_spec in spec.maps.values()}
    if _ARENA in map_types:
        from purebpf.loader.load.arena import place_variables

        spec = place_variables(spec, given)
    struct_ops: Mapping[str, StructOpsMap] = {}
    attach_targets: dict[str, AttachTarget] = {}
    if _STRUCT_OPS in map_types:
        from purebpf.loader.load.struct_ops import resolve

        spec, struct_ops, members = resolve(spec, types)
        attach_targets.update(members)
    attach_targets |= _find_attach_targets(spec, types, replaced, attach_targets.keys())
    btf, copies = spec.btf, _NO_COPIES
    if btf is not None and _CONTEXT_TAG in btf.data:
        from purebpf.loader.load.arg_ctx import fit_contexts

        btf, copies = fit_contexts(spec, btf)
    return Prepared(spec, given, struct_ops, attach_targets, btf, copies)


def _find_attach_targets(
    spec: ObjectSpec,
    types: KernelTypes,
    replaced: Mapping[str, Program],
    map_names: Collection[str],
) -> dict[str, AttachTarget]:
    """Return the attach target of each program that the kernel needs at BPF_PROG_LOAD."""
    targets: dict[str, AttachTarget] = {}
    if replaced:
        from purebpf.loader.programs.attach_target import function_target

        for name, program in replaced.items():
            targets[name] = function_target(spec.programs[name], program)
    for name, program_spec in spec.programs.items():
        if not program_spec.autoload:
            continue
        if not program_spec.type:
            raise NotSupportedError(f"program {name!r}", _explain_section(program_spec.section))
        definition = program_spec.definition
        if definition is None or name in map_names or name in targets:
            continue
        if definition.btf_prefix is not None or definition.attach == _MANY:
            from purebpf.loader.programs.attach_target import attach_target

            targets[name] = attach_target(program_spec, types)
    return targets


def _explain_section(section: str) -> str:
    """Why a section says nothing about its program, and which ones are spelled alike."""
    from difflib import get_close_matches

    from purebpf.abi.sections import DEFINITIONS

    reason = f"libbpf's table of program types does not have section {section!r}"
    words = section.removeprefix("?").split("/")
    for count in range(len(words), 0, -1):  # `cgroup/conect4` first, then `cgroup`
        target = words[count:]
        names = [
            name
            for name, definition in DEFINITIONS.items()
            if name.count("/") == count - 1 and (definition.extras or not target)
        ]
        if similar := get_close_matches("/".join(words[:count]), names, cutoff=0.75):
            spelled = ("/".join([name, *target]) for name in similar)
            return f"{reason}; similar: {', '.join(spelled)}"
    return f"{reason}; no similar name"
