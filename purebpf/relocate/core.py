"""Writes CO-RE results into instructions.

Which part of an instruction changes depends on its class: the immediate of an ALU instruction,
both immediates of an ld_imm64, the offset of a load or store, and the width of a load or store of
a pointer or unsigned integer that has another size on this kernel.

An instruction without an answer to its relocation is poisoned: made a call of a function that does
not exist, which the verifier only objects to when the instruction can be reached. Loading must not
fail before: programs guard such code by asking whether the field exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from purebpf.abi.instruction import INSN_SIZE
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.relocate.code import Code
from purebpf.relocate.linked_program import Patched
from purebpf.spec import FunctionSpec

if TYPE_CHECKING:
    from purebpf.btf.core.matching import CoreResult

POISON = 0xBAD2310
"""The helper number of a poisoned instruction, as libbpf spells "bad relo": 195896080."""

_LD = 0x00
_LDX = 0x01
_ST = 0x02
_STX = 0x03
_ALU = 0x04
_ALU64 = 0x07
_FROM_REGISTER = 0x08
_WIDTH = 0x18
_WIDTHS = {4: 0x00, 2: 0x08, 1: 0x10, 8: 0x18}
_SIZES = {width: size for size, width in _WIDTHS.items()}
_MAX_OFFSET = 32767


def apply_core(
    function: FunctionSpec, results: Iterable[CoreResult], *, byteorder: str, source: str
) -> Patched:
    """Write the result of each of a function's CO-RE relocations into its instruction.

    Args:
        function: the function.
        results: one for each of `function.core_relocations`, in order.
        byteorder: "little" or "big".
        source: the object, for errors.

    Raises:
        FormatError: an instruction that cannot be relocated, or that does not hold the compiler's
            value.
        CoreRelocationError: a number that the instruction has no room for.
    """
    try:
        code = Code(function.code, byteorder)
    except ValueError as error:
        raise FormatError(source, f"function {function.name}", str(error)) from None
    poisoned: dict[int, str] = {}
    for relocation, result in zip(function.core_relocations, results, strict=True):
        slot, rest = divmod(relocation.offset, INSN_SIZE)
        try:
            if rest or not 0 <= slot < len(code):
                _refuse_place(relocation.offset, len(function.code))
            slots = _patch(code, slot, result)
        except _Unfit as unfit:
            place = f"function {function.name}, instruction {slot}"
            where = f"{place}: CO-RE relocation of {result.what}"
            raise FormatError(source, where, str(unfit)) from None
        if slots:
            poisoned.update(dict.fromkeys(slots, result.explain_poison()))
    return Patched(bytes(code), poisoned)


class _Unfit(Exception):  # noqa: N818 - caught by apply_core, which knows the place
    """An instruction that a relocation cannot be for."""


def _refuse_place(offset: int, size: int) -> NoReturn:
    raise _Unfit(f"byte {offset} of {size} is not an instruction")


def _patch(code: Code, slot: int, result: CoreResult) -> range:
    """Patch one instruction; the slots that were poisoned instead."""
    slots = range(slot, slot + (2 if code.is_load64(slot) else 1))
    patch = _PATCHES.get(code.instruction_class(slot), _refuse)
    if not result.problem and patch(code, slot, result):
        return range(0)
    for poisoned in slots:
        code.replace_by_call(poisoned, POISON)
    return slots


def _refuse(code: Code, slot: int, _result: CoreResult) -> bool:
    raise _Unfit(f"opcode {code.opcode(slot):#04x} cannot be relocated")


def _check(result: CoreResult, actual: int, bits: int) -> None:
    if result.is_checked and (actual - result.local_value) % (1 << bits):
        raise _Unfit(f"has {actual}, expected {result.local_value}")


def _too_large(result: CoreResult, bits: int) -> CoreRelocationError:
    return CoreRelocationError(f"{result.explain()}: too large for {bits} bits of an instruction")


def _patch_alu(code: Code, slot: int, result: CoreResult) -> bool:
    if code.opcode(slot) & _FROM_REGISTER:
        _refuse(code, slot, result)
    _check(result, code.immediate(slot), 32)
    if not -(1 << 31) <= result.value < 1 << 32:
        raise _too_large(result, 32)
    code.set_immediate(slot, result.value)
    return True


def _patch_load64(code: Code, slot: int, result: CoreResult) -> bool:
    if not code.is_load64(slot) or code.source(slot) or code.offset(slot):
        _refuse(code, slot, result)
    _check(result, code.load64(slot), 64)
    code.set_load64(slot, result.value)
    return True


def _patch_memory(code: Code, slot: int, result: CoreResult) -> bool:
    """Return True if the load or store can stay: not if its field has a width it cannot change
    to.
    """
    _check(result, code.offset(slot), 64)
    if not 0 <= result.value <= _MAX_OFFSET:
        raise _too_large(result, 16)
    if result.misfit:
        return False
    code.set_offset(slot, result.value)
    if result.size != result.local_size:
        opcode = code.opcode(slot)
        width = _SIZES[opcode & _WIDTH]
        if width != result.local_size:
            raise _Unfit(f"accesses {width} bytes of a field of {result.local_size}")
        if result.size not in _WIDTHS:
            raise _Unfit(f"cannot access {result.size} bytes at once")
        code.set_opcode(slot, opcode & ~_WIDTH | _WIDTHS[result.size])
    return True


_PATCHES = {
    _LD: _patch_load64,
    _LDX: _patch_memory,
    _ST: _patch_memory,
    _STX: _patch_memory,
    _ALU: _patch_alu,
    _ALU64: _patch_alu,
}
