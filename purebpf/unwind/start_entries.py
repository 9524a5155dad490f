"""Entries for code that starts stacks, as if its file had them: see `start_code`."""

from __future__ import annotations

from purebpf.unwind.entries import Cie, Fde
from purebpf.unwind.machine import Machine
from purebpf.unwind.start_code import StartCode

__all__ = ["made_entry", "outermost_entry"]

_ADVANCE4, _UNDEFINED, _DEF_CFA, _DEF_CFA_OFFSET = 0x04, 0x07, 0x0C, 0x0E
"""DW_CFA_advance_loc4, DW_CFA_undefined, DW_CFA_def_cfa, DW_CFA_def_cfa_offset."""
_OFFSET = 0x80
"""DW_CFA_offset, with the register in its low bits."""


def outermost_entry(start: int, end: int, machine: Machine) -> Fde:
    """Return an entry for code that nothing called."""
    cie = Cie()
    cie.ra = machine.ra
    cie.code = bytes((_DEF_CFA, machine.sp, 0))
    return Fde(start, end, cie, bytes((_UNDEFINED, machine.ra)), 0)


def made_entry(found: StartCode, machine: Machine) -> Fde:
    """Return an entry for code of x86-64 whose stack depths are known, or that nothing called."""
    if not found.depths:
        return outermost_entry(found.start, found.end, machine)
    cie = Cie()
    cie.ra, cie.data_factor = machine.ra, -8
    cie.code = bytes((_DEF_CFA, machine.sp, 8, _OFFSET | machine.ra, 1))
    code, at = bytearray(), found.start
    for place, depth in found.depths[1:]:
        code += bytes((_ADVANCE4, *(place - at).to_bytes(4, "little"), _DEF_CFA_OFFSET))
        code += _uleb(depth + 8)
        at = place
    return Fde(found.start, found.end, cie, bytes(code), 0)


def _uleb(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes((*made, number))
