"""Instructions that compute numbers: constants, products of an index, cleared bytes."""

from __future__ import annotations

import math

from iced_x86 import Instruction, Mnemonic, OpKind, Register, RegisterExt

from purebpf.dataflow.code import constant_of, displacement, full
from purebpf.dataflow.pointers import NUMBER, Pointer, State, factor_of

__all__ = ["clears_byte", "half_product", "is_null", "product"]

_HALF = 4
_THREE = 3
_LAST_ERROR = 4095
"""The kernel returns `-errno` as a pointer (include/linux/err.h)."""
_LARGEST = 1 << 20
"""Bytes of an element."""


def is_null(instruction: Instruction) -> bool:
    """Return True for an instruction that sets a register to NULL or to an error number."""
    if instruction.op0_kind != OpKind.REGISTER:
        return False
    if instruction.mnemonic in (Mnemonic.XOR, Mnemonic.SUB):
        is_whole = RegisterExt.size(instruction.op0_register) >= _HALF
        same = instruction.op1_kind == OpKind.REGISTER
        return is_whole and same and instruction.op0_register == instruction.op1_register
    constant = constant_of(instruction) if instruction.mnemonic == Mnemonic.MOV else None
    return constant is not None and -_LAST_ERROR <= constant <= 0


def product(instruction: Instruction, state: State) -> Pointer | None:
    """Return the factor of a number that was multiplied, as an index by the size of a struct."""
    mnemonic, constant = instruction.mnemonic, None
    source = full(instruction.op0_register)
    if mnemonic == Mnemonic.IMUL and instruction.op_count == _THREE:
        constant = instruction.immediate(2)
        source = full(instruction.op1_register) if instruction.op1_kind == OpKind.REGISTER else 0
    elif mnemonic == Mnemonic.SHL and instruction.op1_kind == OpKind.IMMEDIATE8:
        constant = 1 << instruction.immediate8
    elif mnemonic == Mnemonic.LEA:
        return _sum(instruction, state)
    elif mnemonic in (Mnemonic.ADD, Mnemonic.SUB) and constant_of(instruction) is not None:
        step = math.gcd(factor_of(state, source), constant_of(instruction) or 0)
        return Pointer(NUMBER, 0, step) if step > 1 else None
    elif mnemonic == Mnemonic.ADD and instruction.op1_kind == OpKind.REGISTER:
        step = math.gcd(factor_of(state, source), factor_of(state, full(instruction.op1_register)))
        return Pointer(NUMBER, 0, step) if step > 1 else None
    if constant is None or not 1 < constant < _LARGEST:
        return None
    return Pointer(NUMBER, 0, constant * factor_of(state, source))


def half_product(instruction: Instruction, state: State) -> Pointer | None:
    """Return the factor of a product of 32 bits; None: it has none that an overflow leaves."""
    if RegisterExt.size(instruction.op0_register) != _HALF:
        return None
    number = product(instruction, state)
    is_power = number is not None and not number.moved & (number.moved - 1)
    return number if is_power else None


def _sum(instruction: Instruction, state: State) -> Pointer | None:
    """Return the factor of `base + index * scale`, as `lea (%rax,%rax,4)` multiplies by five."""
    base, index = full(instruction.memory_base), full(instruction.memory_index)
    scale = instruction.memory_index_scale
    if index == Register.NONE or displacement(instruction):
        return None
    if base == index:
        step = (scale + 1) * factor_of(state, index)
    elif base == Register.NONE:
        step = scale * factor_of(state, index)
    else:
        step = math.gcd(factor_of(state, base), scale * factor_of(state, index))
    return Pointer(NUMBER, 0, step) if 1 < step < _LARGEST else None


def clears_byte(instruction: Instruction) -> bool:
    """Return True for an instruction that clears the lowest byte of a register."""
    low = (Register.AL, Register.CL, Register.DL, Register.BL, Register.SIL, Register.DIL)
    is_xor = instruction.mnemonic == Mnemonic.XOR and instruction.op1_kind == OpKind.REGISTER
    register = int(instruction.op0_register)
    is_low = register in low or Register.BPL <= register <= Register.R15L
    return is_xor and register == int(instruction.op1_register) and is_low
