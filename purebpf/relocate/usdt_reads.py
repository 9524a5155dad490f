"""The arguments of a static probe that a program reads, as far as its code shows.

`bpf_usdt_arg(ctx, number, &value)` of `bpf/usdt.bpf.h` is a subprogram; its second parameter is
nearly always a constant that the instructions before the call put into R2.
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.abi.instruction import CALL, INSN_SIZE, PSEUDO_CALL, Instruction, unpack
from purebpf.spec import FunctionSpec, ObjectSpec, RelocationKind

__all__ = ["arguments_read"]

_SPECS_MAP = "__bpf_usdt_specs"
_READER = "bpf_usdt_arg"
_OTHERS = frozenset({"bpf_usdt_arg_cnt", "bpf_usdt_cookie"})
"""Functions of the header that use the map, and read no argument."""
_TAIL_CALL = 12
_NUMBER = 2
"""The register of the second parameter."""

_MOVES = (0xB7, 0xB4)
"""`r2 = imm` and `w2 = imm`."""
_LD, _LDX, _STX, _ALU, _JMP, _JMP32, _ALU64 = 0, 1, 3, 4, 5, 6, 7
_CLASS = 7
_JA, _JA32, _EXIT = 0x05, 0x06, 0x95
_ATOMIC, _MODE = 0xC0, 0xE0


def arguments_read(spec: ObjectSpec, program: str) -> frozenset[int] | None:
    """Return the numbers of the arguments that a program reads, from 0.

    The answer is None if the program may read any: the number is computed, it reads the table of
    arguments itself, or it goes on in another program (a tail call).
    """
    numbers: set[int] = set()
    for function in _reachable(spec, spec.programs[program].function):
        if function.name == _READER or function.name in _OTHERS:
            continue
        if any(
            relocation.kind is RelocationKind.MAP and relocation.target == _SPECS_MAP
            for relocation in function.relocations
        ):
            return None
        code = unpack(function.code, spec.byteorder)
        if any(_is_helper(instruction, _TAIL_CALL) for instruction in code):
            return None
        targets = _jump_targets(code)
        for relocation in function.relocations:
            if relocation.kind is not RelocationKind.CALL:
                continue
            if spec.functions[relocation.target].name == _READER:
                number = _second_parameter(code, relocation.offset // INSN_SIZE, targets)
                if number is None:
                    return None
                numbers.add(number)
    return frozenset(numbers)


def _reachable(spec: ObjectSpec, first: str) -> Iterator[FunctionSpec]:
    """The function of a program, and each one that it calls or passes on."""
    left, seen = [first], {first}
    while left:
        function = spec.functions[left.pop()]
        yield function
        for relocation in function.relocations:
            is_code = relocation.kind in (RelocationKind.CALL, RelocationKind.FUNCTION)
            if is_code and relocation.target not in seen:
                seen.add(relocation.target)
                left.append(relocation.target)


def _is_helper(instruction: Instruction, number: int) -> bool:
    return instruction.opcode == CALL and not instruction.src and instruction.imm == number


def _jump_targets(code: list[Instruction]) -> set[int]:
    targets = set()
    for at, instruction in enumerate(code):
        if instruction.opcode & _CLASS in (_JMP, _JMP32) and instruction.opcode not in (
            CALL,
            _EXIT,
        ):
            distance = instruction.imm if instruction.opcode == _JA32 else instruction.offset
            targets.add(at + 1 + distance)
    return targets


def _second_parameter(code: list[Instruction], call: int, targets: set[int]) -> int | None:
    """Return the constant in R2 at a call, None if the straight code before it has none."""
    assert code[call].opcode == CALL
    assert code[call].src == PSEUDO_CALL
    for at in range(call - 1, -1, -1):
        if at + 1 in targets:
            return None
        instruction = code[at]
        kind = instruction.opcode & _CLASS
        if instruction.opcode in _MOVES and instruction.dst == _NUMBER:
            return instruction.imm
        if instruction.opcode in (CALL, _EXIT, _JA, _JA32):
            return None
        if kind in (_LD, _LDX, _ALU, _ALU64) and instruction.dst == _NUMBER:
            return None
        if kind == _STX and instruction.opcode & _MODE == _ATOMIC and instruction.src == _NUMBER:
            return None
    return None
