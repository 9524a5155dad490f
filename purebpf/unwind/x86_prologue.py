"""The stack depth in straight code of x86-64: what its instructions push, and take.

Knows the instructions that compilers write into prologues, and no others.
"""

from __future__ import annotations

__all__ = ["stack_depths"]

_WITH_OPERANDS = frozenset(
    bytes.fromhex("01 03 09 0b 21 23 29 2b 31 33 38 39 3a 3b 63 84 85 88 89 8a 8b 8d")
)
"""Opcodes with two operands and nothing behind them."""
_IMMEDIATE = {0x80: 1, 0x81: 4, 0x83: 1, 0xC6: 1, 0xC7: 4}
"""Opcodes with one operand and so many bytes of a number."""
_SP = 4
_ADD, _SUB = 0, 5
_INDIRECT_CALL = 2


def stack_depths(code: bytes) -> list[tuple[int, int]] | None:
    """Return each offset at which the stack depth changes, and the depth from there on.

    The depth is in bytes, and 0 at the first instruction. None: the code has an instruction that
    is not known, or that may change the stack pointer otherwise.
    """
    depths = [(0, 0)]
    at = 0
    while at < len(code):
        read = _read(code, at)
        if read is None:
            return None
        at, taken = read
        if taken:
            depths.append((at, depths[-1][1] + taken))
    return depths if at == len(code) else None


def _read(code: bytes, at: int) -> tuple[int, int] | None:
    """Return where the next instruction begins, and the bytes that this one takes."""
    wide = reg = base = 0
    opcode = code[at]
    if opcode & 0xF0 == 0x40:
        wide, reg, base = opcode & 8, (opcode & 4) << 1, (opcode & 1) << 3
        at += 1
        opcode = code[at] if at < len(code) else 0
    at += 1
    if opcode & 0xF0 == 0x50:
        return at, 8 if opcode < 0x58 else -8
    if opcode == 0xE8:
        return at + 4, 0
    if opcode & 0xF8 == 0xB8:
        return at + (8 if wide else 4), 0
    if opcode != 0xFF and opcode not in _WITH_OPERANDS and opcode not in _IMMEDIATE:
        return None
    return _read_operands(code, at, opcode, reg, base)


def _read_operands(
    code: bytes, at: int, opcode: int, reg: int, base: int
) -> tuple[int, int] | None:
    if at >= len(code):
        return None
    form = code[at]
    mode, middle, operand = form >> 6, form >> 3 & 7, form & 7
    at += 1
    is_sp = mode == 3 and operand | base == _SP
    if mode < 3:
        if operand == 4:
            if at >= len(code):
                return None
            operand = code[at] & 7 if not mode else 4
            at += 1
        at += 4 if mode == 2 or (not mode and operand == 5) else mode
    size = _IMMEDIATE.get(opcode, 0)
    number = int.from_bytes(code[at : at + size], "little", signed=True) if size else 0
    at += size
    if opcode == 0xFF:
        return (at, 0) if middle == _INDIRECT_CALL else None
    if opcode in (0x81, 0x83) and is_sp and middle in (_ADD, _SUB):
        return at, number if middle == _SUB else -number
    loads = opcode in (0x03, 0x0B, 0x23, 0x2B, 0x33, 0x63, 0x8A, 0x8B, 0x8D)
    may_set_sp = middle | reg == _SP if loads else is_sp and opcode not in (0x38, 0x39, 0x84, 0x85)
    return None if may_set_sp else (at, 0)
