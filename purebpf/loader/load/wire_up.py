"""Last stage of a load: connects programs and maps that refer to each other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from purebpf.abi.bpf import bpf_map_type
from purebpf.loader.load.prepare_spec import Prepared
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.program import Program

__all__ = ["wire_up"]

_PROG_ARRAY = bpf_map_type.BPF_MAP_TYPE_PROG_ARRAY
_USDT = "__bpf_usdt_specs"


def wire_up(prepared: Prepared, maps: Mapping[str, Map], programs: Mapping[str, Program]) -> None:
    """Put the programs where the maps want them.

    A slot for a program that was not loaded stays empty, which a RuntimeWarning says.

    Raises:
        KernelError: EINVAL, a program differs in type from those which use its PROG_ARRAY.
    """
    for name, map_spec in prepared.spec.maps.items():
        if map_spec.type == _PROG_ARRAY and name in maps:
            for slot, program in map_spec.initial:
                if program in programs:
                    maps[name].put(slot, programs[program])
                else:
                    _warn_of_slot(prepared, name, slot, program)
    for name, table in prepared.struct_ops.items():
        maps[name].struct_ops = table.value(programs)
    if _USDT in maps:
        from purebpf.loader.attach._common.usdt_specs import UsdtSpecs
        from purebpf.relocate.usdt_reads import arguments_read

        specs = UsdtSpecs.of(maps)
        for name, loaded in programs.items():
            loaded.usdt = specs
            loaded.usdt_arguments = arguments_read(prepared.spec, name)


def _warn_of_slot(prepared: Prepared, name: str, slot: int, program: str) -> None:
    """Say that a tail call to a slot does nothing, as its program was not loaded."""
    section = prepared.spec.programs[program].section if program in prepared.spec.programs else ""
    why = f"SEC({section!r}) is optional" if section.startswith("?") else "autoload is off"
    warnings.warn(
        f"{prepared.spec.source}: slot {slot} of map {name} is empty: its program {program} was "
        f"not loaded ({why}), so a tail call to it does nothing; load it with "
        f"spec.configure({program!r}, autoload=True)",
        RuntimeWarning,
        stacklevel=4,
    )
