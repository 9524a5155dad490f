"""The stack pointer's distance from the CFA before each instruction, and the slots it gives."""

from __future__ import annotations

from iced_x86 import Instruction, MemorySizeExt, Mnemonic, OpKind, Register

from purebpf.dataflow.code import Code, constant_of, displacement

__all__ = ["Frames"]

_WORD = 8
_SLOT = -(1 << 32)
_Frame = tuple[int | None, int | None]
"""The distances of RSP and RBP; None: unknown."""


class Frames:
    """The frames of a function.

    Args:
        code: of the function.
    """

    def __init__(self, code: Code) -> None:
        self._before: list[_Frame | None] = [None] * len(code.instructions)
        todo: list[tuple[int, _Frame]] = [(0, (-_WORD, None))] if code.instructions else []
        while todo:
            number, frame = todo.pop()
            known = self._before[number]
            if known is not None:
                frame = _agreed(known, frame)
            if frame != known:
                self._before[number] = frame
                after = _after(code.instructions[number], code.written[number], frame)
                todo += [(follower, after) for follower in code.next[number]]

    def slot(self, number: int, instruction: Instruction) -> int | None:
        """Return the negative number of the slot of eight bytes that an operand is; None: none."""
        if int(instruction.memory_index) != Register.NONE:
            return None
        if MemorySizeExt.size(instruction.memory_size) != _WORD:
            return None
        frame, base = self._before[number], int(instruction.memory_base)
        if frame is None or base not in (Register.RSP, Register.RBP):
            return None
        distance = frame[0] if base == Register.RSP else frame[1]
        return None if distance is None else _SLOT - distance - displacement(instruction)

    def pushed(self, number: int) -> int | None:
        """Return the slot that a PUSH writes."""
        distance = (self._before[number] or (None,))[0]
        return None if distance is None else _SLOT - distance + _WORD

    def popped(self, number: int) -> int | None:
        """Return the slot that a POP reads."""
        distance = (self._before[number] or (None,))[0]
        return None if distance is None else _SLOT - distance


def _agreed(one: _Frame, other: _Frame) -> _Frame:
    return (
        one[0] if one[0] == other[0] else None,
        one[1] if one[1] == other[1] else None,
    )


def _after(instruction: Instruction, written: set[int], frame: _Frame) -> _Frame:
    stack, base = frame
    mnemonic = instruction.mnemonic
    if instruction.is_call_near or instruction.is_call_near_indirect:
        return frame
    moved = _moved(instruction)
    if Register.RSP in written:
        if moved is not None and stack is not None:
            stack += moved
        elif mnemonic == Mnemonic.LEAVE:
            stack = None if base is None else base + _WORD
        else:
            stack = _copied(instruction, frame)
    if Register.RBP in written:
        base = _copied(instruction, frame)
    return stack, base


def _moved(instruction: Instruction) -> int | None:
    """Return the bytes that an instruction adds to the stack pointer; None: unknown."""
    mnemonic = instruction.mnemonic
    if mnemonic in (Mnemonic.PUSH, Mnemonic.POP):
        return _WORD if mnemonic == Mnemonic.POP else -_WORD
    constant = constant_of(instruction)
    if constant is not None and mnemonic in (Mnemonic.ADD, Mnemonic.SUB):
        return constant if mnemonic == Mnemonic.ADD else -constant
    return None


def _copied(instruction: Instruction, frame: _Frame) -> int | None:
    """Return the distance that a copy of RSP or RBP has, moved by a constant."""
    distances = {int(Register.RSP): frame[0], int(Register.RBP): frame[1]}
    if instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.REGISTER:
        return distances.get(int(instruction.op1_register))
    if instruction.mnemonic == Mnemonic.LEA and instruction.memory_index == Register.NONE:
        distance = distances.get(int(instruction.memory_base))
        return None if distance is None else distance + displacement(instruction)
    return None
