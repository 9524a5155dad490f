"""The stack of a function of x86-64 code at an instruction, where no tables describe it."""

from __future__ import annotations

from purebpf.symbols.x86_64_code import CodeError, Flow, Instruction, decode

__all__ = ["depth_at"]

_WORD = 8
_RSP = 4
_PUSHES, _POPS = range(0x50, 0x58), range(0x58, 0x60)
_PUSH_CONSTANTS, _PUSH_FLAGS, _POP_MEMORY, _POP_FLAGS = (0x68, 0x6A), 0x9C, 0x8F, 0x9D
_BY_BYTE, _BY_LONG = 0x83, 0x81
_ADD, _SUBTRACT, _PUSH = 0, 5, 6
"""What ModRM.reg chooses, of these opcodes and of 0xff."""
_LEAVE, _ENTER, _GROUP_FF = 0xC9, 0xC8, 0xFF
_LEA, _MOVE_FROM, _MOVE_TO = 0x8D, 0x8B, 0x89
_FRAME_POINTER = (b"\x55\x48\x89\xe5", b"\x55\x48\x8b\xec")
"""push %rbp; mov %rsp, %rbp"""
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
_HALTS = frozenset((0x10B, 0xF4))
_SHORT = 0x66


def depth_at(code: bytes, place: int) -> int | None:
    """Return how many bytes a function has put on the stack before an instruction.

    Args:
        code: the function from its first byte; the return address alone is on the stack then.
        place: where the instruction is.

    Returns:
        The number of bytes, 0 where the stack is as at the start; None: it is not known, or
        differs by the way that leads there.
    """
    depths: dict[int, int | None] = {0: 0}
    waiting = [0]
    while waiting:
        at = waiting.pop()
        try:
            instruction = decode(code, at)
        except CodeError:
            return None
        after = _after(code, at, instruction, depths[at])
        for following in _followers(at, instruction):
            if not 0 <= following < len(code):
                continue
            if following not in depths:
                depths[following] = after
                waiting.append(following)
            elif depths[following] != after and depths[following] is not None:
                depths[following] = None
                waiting.append(following)
    return depths.get(place)


def _followers(at: int, instruction: Instruction) -> list[int]:
    following = at + instruction.size
    if instruction.flow is Flow.CONDITIONAL:
        return [following, instruction.target]
    if instruction.flow is Flow.JUMP:
        return [instruction.target]
    is_next = instruction.flow is Flow.NEXT and instruction.opcode not in _HALTS
    return [following] if is_next else []


def _after(code: bytes, at: int, instruction: Instruction, depth: int | None) -> int | None:
    """The depth behind an instruction."""
    opcode, operand = instruction.opcode, instruction.operand
    if opcode == _LEAVE:
        start = len(_ENDBR64) if code.startswith(_ENDBR64) else 0
        return 0 if code.startswith(_FRAME_POINTER, start) else None
    if depth is None or opcode == _ENTER:
        return None
    digit = operand.register & 7 if operand else -1
    pushes = opcode in (*_PUSHES, *_PUSH_CONSTANTS, _PUSH_FLAGS)
    pops = opcode in (*_POPS, _POP_MEMORY, _POP_FLAGS)
    if pushes or pops or (opcode == _GROUP_FF and digit == _PUSH):
        if _SHORT in instruction.prefixes:
            return None
        return depth - _WORD if pops else depth + _WORD
    if not operand:
        return depth
    if opcode in (_BY_BYTE, _BY_LONG) and operand.is_register and operand.base == _RSP:
        size = 1 if opcode == _BY_BYTE else 4
        end = at + instruction.size
        value = int.from_bytes(code[end - size : end], "little", signed=True)
        return {_ADD: depth - value, _SUBTRACT: depth + value}.get(digit)
    writes = opcode in (_LEA, _MOVE_FROM) and operand.register == _RSP
    writes |= opcode == _MOVE_TO and operand.is_register and operand.base == _RSP
    return None if writes else depth
