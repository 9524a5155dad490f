"""The code of an object as text, below its source lines of C or Python."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from purebpf.abi import disassembler
from purebpf.abi.instruction import INSN_SIZE, unpack
from purebpf.similar import unknown_name
from purebpf.spec import RelocationKind

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.spec import FunctionSpec, ObjectSpec, Relocation

__all__ = ["disassemble"]

_COLUMN_BITS = 10


def disassemble(spec: ObjectSpec, name: str) -> str:
    """The instructions of a program or function as compiled, one a line, below their C lines.

    The notation is the verifier's. Behind each instruction is its target: a map, a variable's
    place, a function, a symbol of the kernel, or the CO-RE relocation that `load` applies to it.

    Raises:
        KeyError: no program or function is called so; lists similar names.
    """
    key = spec.programs[name].function if name in spec.programs else name
    if key not in spec.functions:
        known = [*spec.programs, *spec.functions]
        raise unknown_name(known, name, f"{spec.source}: unknown program or function")
    function = spec.functions[key]
    notes = _notes(function)
    sources = {} if spec.btf is None else _sources(function, spec.btf)
    lines = []
    for index, text in disassembler.disassemble(unpack(function.code, spec.byteorder)):
        if index in sources:
            lines.append(f"; {sources[index]}")
        note = f"  ; {', '.join(notes[index])}" if index in notes else ""
        lines.append(f"{index:4}: {text}{note}")
    return "\n".join(lines)


def _sources(function: FunctionSpec, btf: Btf) -> dict[int, str]:
    """The line of each instruction that begins another one than the instruction before."""
    sources, before = {}, ""
    for info in function.line_info:
        file = btf.string(info.file_name).rpartition("/")[2]
        source = f"{file}:{info.line_col >> _COLUMN_BITS}: {btf.string(info.line).strip()}"
        if source != before:
            sources[info.offset // INSN_SIZE] = before = source
    return sources


def _notes(function: FunctionSpec) -> dict[int, list[str]]:
    notes = defaultdict(list)
    for relocation in function.relocations:
        notes[relocation.offset // INSN_SIZE].append(_reference(relocation))
    for core in function.core_relocations:
        notes[core.offset // INSN_SIZE].append(f"CO-RE: type {core.type_id}, {core.access}")
    return dict(notes)


def _reference(relocation: Relocation) -> str:
    kind, target, addend = relocation.kind, relocation.target, relocation.addend
    if kind is RelocationKind.DATA:
        return f"{target} + {addend}"
    if kind is RelocationKind.CALL:
        return f"{target}()"
    return f"{kind.value} {target}" + (f" + {addend}" if addend else "")
