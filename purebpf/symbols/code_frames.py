"""The distance of x86-64 code from its return address, read from its instructions.

For assembly that has no call frame information. What an instruction pushes, pops, adds to the stack
pointer or takes from it is known; a return has its address at the stack pointer. So the distance is
known before each instruction from which all ways lead to returns. The frame pointer is known, too:
the place that is popped into it is the place where the caller's value was saved.

An instruction that sets the stack pointer otherwise, an indirect jump, or two ways that disagree
leave the distance unknown.
"""

from __future__ import annotations

from purebpf.symbols.x86_64_code import CodeError, Flow, Instruction, decode
from purebpf.tuples import NamedTuple

__all__ = ["CodeFrame", "frames_of"]

_SP, _FP = 4, 5
_WORD = 8
_PUSHES, _POPS = range(0x50, 0x58), range(0x58, 0x60)
_PUSH_NUMBER, _PUSH_FLAGS, _POP_FLAGS = (0x68, 0x6A), 0x9C, 0x9D
_GROUP_1 = (0x81, 0x83)
_ADD, _SUB, _COMPARE = 0, 5, 7
_GROUP_5, _PUSH_MEMORY = 0xFF, 6
_POP_MEMORY = 0x8F
_CALL, _CALLS = 0xE8, 2
"""Its opcode, and what the group has for near and far ones."""
_SYSCALL, _RETURNS_FROM_SIGNAL = 0x105, b"\x0f\0\0\0\x0f\x05"
"""mov $15, %rax; syscall: rt_sigreturn(2)."""
_RETURNS = (b"\xc3", b"\xc2")
_ALIGNMENT = 16
_PADDING = (b"\x90", b"\x66\x90", b"\x0f\x1f", b"\x66\x0f\x1f", b"\x66\x2e\x0f\x1f", b"\x66\x66")
_LOAD, _STORE, _ADDRESS = 0x8B, 0x89, 0x8D
_ENDS = frozenset((0xCC, 0xF4, 0x10B))
"""int3, hlt and ud2: nothing comes after them."""
_OTHERWISE = frozenset((0xC8, 0xC9))
"""enter and leave."""
_TO_REGISTER = frozenset((0x03, 0x0B, 0x13, 0x1B, 0x23, 0x2B, 0x33, 0x63, 0x87, _LOAD)) | {
    *range(0x140, 0x150),
    *(0x1AF, 0x1B6, 0x1B7, 0x1BC, 0x1BD, 0x1BE, 0x1BF),
}
"""Opcodes that write the register beside their operand."""
_TO_OPERAND = frozenset((0x01, 0x09, 0x11, 0x19, 0x21, 0x29, 0x31, 0x87, _STORE, 0xC7, 0xF7)) | {
    *(0xC1, 0xD1, 0xD3, 0x1A4, 0x1A5, 0x1AC, 0x1AD, 0x1B1, 0x1C1, _GROUP_5)
}
"""Opcodes that may write their operand."""


class CodeFrame(NamedTuple):
    """The frame at an instruction, and at those after it up to the next `CodeFrame`.

    Attributes:
        offset: where the instruction begins.
        depth: bytes from the stack pointer to the return address; -1: not known.
        fp: bytes from the place where the frame pointer is saved to the return address; 0: the
            register has the caller's.
    """

    offset: int
    depth: int
    fp: int


class _Step(NamedTuple):
    """The effect of an instruction: bytes that it takes from the stack, and the place that it saves
    the frame pointer in or loads it from, as a distance from the stack pointer behind it.
    """

    taken: int
    saves: int | None = None
    loads: int | None = None


_NOTHING = _Step(0)


def frames_of(code: bytes, address: int = 0) -> list[CodeFrame]:
    """Return the frames in some code, in ascending order; the first is at 0.

    Args:
        code: should begin with an instruction. If it does not, the first few frames may be wrong.
        address: of the code, in its file.
    """
    if not any(map(code.__contains__, _RETURNS)):  # zeros between functions, above all
        return [CodeFrame(0, -1, 0)] if code else []
    steps: dict[int, _Step | None] = {}
    sources: dict[int, list[int]] = {}
    found: dict[int, tuple[int, int] | None] = {}
    todo: list[tuple[int, int, int]] = []
    at = 0
    while at < len(code):
        try:
            instruction = decode(code, at)
        except CodeError:
            steps[at] = found[at] = None
            at += 1
            continue
        steps[at] = _step(code, at, instruction)
        flow, target = instruction.flow, instruction.target
        if flow is Flow.RETURN:
            todo.append((at, 0, 0))
        if flow in (Flow.JUMP, Flow.CONDITIONAL):
            sources.setdefault(target, []).append(at)
        behind = at + instruction.size
        if flow in (Flow.NEXT, Flow.CONDITIONAL) and not _ends(code, behind, address, instruction):
            sources.setdefault(behind, []).append(at)
        at = behind
    while todo:
        at, depth, fp = todo.pop()
        if at in found:
            if found[at] not in (None, (depth, fp)):
                _forget(at, found, sources)
            continue
        found[at] = depth, fp
        for source in sources.get(at, ()):
            frame = _before(steps[source], depth, fp)
            if frame is not None:
                todo.append((source, *frame))
    frames: list[CodeFrame] = []
    for at in steps:
        depth, fp = found.get(at) or (-1, 0)
        if not frames or frames[-1][1:] != (depth, fp):
            frames.append(CodeFrame(at, depth, fp))
    return frames


def _ends(code: bytes, behind: int, address: int, instruction: Instruction) -> bool:
    """Return True if another function may begin behind an instruction: a call, or a system call,
    that does not return is the last one of a function, and padding follows, or an address at which
    functions begin.
    """
    opcode, operand = instruction.opcode, instruction.operand
    is_call = opcode in (_CALL, _SYSCALL) or (
        opcode == _GROUP_5 and operand is not None and operand.register & 6 == _CALLS
    )
    if not is_call:
        return opcode in _ENDS
    if opcode == _SYSCALL and code.endswith(_RETURNS_FROM_SIGNAL, 0, behind):
        return True
    return (address + behind) % _ALIGNMENT == 0 or code.startswith(_PADDING, behind)


def _forget(
    at: int, found: dict[int, tuple[int, int] | None], sources: dict[int, list[int]]
) -> None:
    """Make the frame at an instruction, and at all that lead there, unknown."""
    todo = [at]
    while todo:
        at = todo.pop()
        found[at] = None
        todo += [source for source in sources.get(at, ()) if found.get(source, at) is not None]


def _before(step: _Step | None, depth: int, fp: int) -> tuple[int, int] | None:
    """Return the depth, and where the frame pointer is, before an instruction, by those after it;
    None: not known.
    """
    if step is None:
        return None
    if step.saves is not None and fp == depth - step.saves:
        fp = 0
    if step.loads is not None and not fp:  # else another value, and it is loaded again later
        fp = depth - step.loads
    depth -= step.taken
    return (depth, fp) if depth >= 0 and fp >= 0 else None


def _step(code: bytes, at: int, instruction: Instruction) -> _Step | None:
    """Return what an instruction does to the stack; None: that is not known."""
    opcode, operand = instruction.opcode, instruction.operand
    is_narrow = b"\x66" in instruction.prefixes
    if opcode in _PUSHES or opcode in _POPS:
        register = operand.base if operand is not None else -1
        if is_narrow or (register == _SP and opcode in _POPS):
            return None
        is_fp = register == _FP
        if opcode in _PUSHES:
            return _Step(_WORD, saves=0 if is_fp else None)
        return _Step(-_WORD, loads=-_WORD if is_fp else None)
    if opcode in (*_PUSH_NUMBER, _PUSH_FLAGS):
        return None if is_narrow else _Step(_WORD)
    if opcode == _POP_FLAGS:
        return None if is_narrow else _Step(-_WORD)
    if opcode in _OTHERWISE:
        return None
    if operand is None:
        return _NOTHING
    middle = operand.register & 7
    if opcode == _GROUP_5 and middle == _PUSH_MEMORY:
        return None if is_narrow else _Step(_WORD)
    if opcode == _POP_MEMORY:
        return None
    is_sp = operand.is_register and operand.base == _SP
    if opcode in _GROUP_1 and is_sp:
        return _added(code, at, instruction, middle)
    of_sp = not operand.is_register and operand.base == _SP and operand.index_register < 0
    if opcode == _ADDRESS and operand.register == _SP:
        is_plain = of_sp and instruction.wide
        return _Step(-_displacement(code, at, instruction)) if is_plain else None
    if (opcode in _TO_REGISTER and operand.register == _SP) or (opcode in _TO_OPERAND and is_sp):
        return None
    if of_sp and instruction.wide and operand.register == _FP and opcode in (_LOAD, _STORE):
        place = _displacement(code, at, instruction)
        return _Step(0, loads=place) if opcode == _LOAD else _Step(0, saves=place)
    return _NOTHING


def _added(code: bytes, at: int, instruction: Instruction, kind: int) -> _Step | None:
    """Return what `add $n, %rsp` and its kin do."""
    if kind == _COMPARE:
        return _NOTHING
    if kind not in (_ADD, _SUB) or not instruction.wide:
        return None
    end = at + instruction.size
    size = 1 if instruction.opcode == _GROUP_1[1] else 4
    number = int.from_bytes(code[end - size : end], "little", signed=True)
    return _Step(number if kind == _SUB else -number)


def _displacement(code: bytes, at: int, instruction: Instruction) -> int:
    """Return the displacement of an operand that is relative to the stack pointer."""
    begin = at + len(instruction.prefixes) + 4  # behind REX, opcode, ModRM and SIB
    return int.from_bytes(code[begin : at + instruction.size], "little", signed=True)
