"""The stack of a function of x86-64 code at an instruction, where no tables describe it."""

from __future__ import annotations

from purebpf.symbols.code_frames import read_step
from purebpf.symbols.x86_64_code import CodeError, Flow, Instruction, decode

__all__ = ["depth_at"]

_WORD = 8
_POP_MEMORY, _SHORT = 0x8F, b"\x66"
_FRAME_POINTER = (b"\x55\x48\x89\xe5", b"\x55\x48\x8b\xec")
"""push %rbp; mov %rsp, %rbp"""
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
_HALTS = frozenset((0x10B, 0xF4))


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
    step = read_step(code, at, instruction)
    if step.is_leave:
        start = len(_ENDBR64) if code.startswith(_ENDBR64) else 0
        return 0 if code.startswith(_FRAME_POINTER, start) else None
    if depth is not None and instruction.opcode == _POP_MEMORY:
        return None if _SHORT in instruction.prefixes else depth - _WORD
    return None if depth is None or step.taken is None else depth + step.taken
