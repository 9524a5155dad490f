"""Second stage of a load: links the instructions of each program; creates nothing."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.errors import LinkError
from purebpf.loader.load.kernel_types import KernelTypes
from purebpf.relocate import Linker
from purebpf.relocate.linked_program import LinkedProgram
from purebpf.spec import ObjectSpec

__all__ = ["link_programs"]


def link_programs(spec: ObjectSpec, types: KernelTypes) -> Mapping[str, LinkedProgram]:
    """The programs to load, by name, and those that a map is exclusive to.

    Raises:
        LinkError: a map is exclusive to a program that the object does not have; or as
            `Linker.link`.
        FormatError, CoreRelocationError: as `Linker.link`.
        NotSupportedError, KernelError: as for the symbols and types of `KernelTypes`.
    """
    linker = Linker(spec, types.core_targets, types.extern, types)
    linked = {
        name: linker.link(name) for name, program in spec.programs.items() if program.autoload
    }
    for name, map_spec in spec.maps.items():
        owner = map_spec.exclusive_to
        if owner and owner not in spec.programs:
            problem = f"map {name} is exclusive to this program, which is not in the object"
            raise LinkError(spec.source, owner, problem)
        if owner and owner not in linked:
            linked[owner] = linker.link(owner)
    return linked
