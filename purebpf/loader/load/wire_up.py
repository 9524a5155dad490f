"""Last stage of a load: connects programs and maps that refer to each other."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.abi.bpf import bpf_map_type
from purebpf.loader.load.prepare_spec import Prepared
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.program import Program

__all__ = ["wire_up"]

_PROG_ARRAY = bpf_map_type.BPF_MAP_TYPE_PROG_ARRAY
_USDT = "__bpf_usdt_specs"


def wire_up(prepared: Prepared, maps: Mapping[str, Map], programs: Mapping[str, Program]) -> None:
    """Put the programs where the maps want them; those that were not loaded stay out.

    Raises:
        KernelError: EINVAL, a program differs in type from those which use its PROG_ARRAY.
    """
    for name, map_spec in prepared.spec.maps.items():
        if map_spec.type == _PROG_ARRAY and name in maps:
            for slot, program in map_spec.initial:
                if program in programs:
                    maps[name].put(slot, programs[program])
    for name, table in prepared.struct_ops.items():
        maps[name].struct_ops = table.value(programs)
    if _USDT in maps:
        from purebpf.loader.attach._common.usdt_specs import UsdtSpecs
        from purebpf.relocate.usdt_reads import arguments_read

        specs = UsdtSpecs.of(maps)
        for name, loaded in programs.items():
            loaded.usdt = specs
            loaded.usdt_arguments = arguments_read(prepared.spec, name)
