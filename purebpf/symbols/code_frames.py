"""The distance of x86-64 code from its return address, read from its instructions.

For assembly that has no call frame information. What an instruction pushes, pops, adds to the stack
pointer or takes from it is known; a return has its address at the stack pointer. So the distance is
known before each instruction from which all ways lead to returns. The frame pointer is known, too:
the place that is popped into it is the place where the caller's value was saved.

Functions that align the stack set the stack pointer otherwise, and take it back from the frame
pointer or from a word on the stack. Between their `mov %rsp, %rbp` and `leave`, the distance of the
frame pointer is known, and between `mov %rax, 64(%rsp)` and `mov 64(%rsp), %rsp` that of the word.

An instruction that sets the stack pointer otherwise and is not between such two, an indirect jump,
or two ways that disagree leave the distance unknown.
"""

from __future__ import annotations

from purebpf.enums import IntEnum
from purebpf.symbols.x86_64_code import CodeError, Flow, Instruction, Operand, decode
from purebpf.tuples import NamedTuple

__all__ = ["Base", "CodeFrame", "Step", "frames_of", "read_step"]

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
_CONSTANTS = range(0xB8, 0xC0)
_EXCHANGE_FP = 0x95
_ENDS = frozenset((0xCC, 0xF4, 0x10B))
"""int3, hlt and ud2: nothing comes after them."""
_ENTER, _LEAVE = 0xC8, 0xC9
_TO_REGISTER = frozenset((0x03, 0x0B, 0x13, 0x1B, 0x23, 0x2B, 0x33, 0x63, 0x87, _LOAD)) | {
    *range(0x140, 0x150),
    *(0x1AF, 0x1B6, 0x1B7, 0x1BC, 0x1BD, 0x1BE, 0x1BF),
}
"""Opcodes that write the register beside their operand."""
_TO_OPERAND = frozenset((0x01, 0x09, 0x11, 0x19, 0x21, 0x29, 0x31, 0x87, _STORE, 0xC7, 0xF7)) | {
    *(0xC1, 0xD1, 0xD3, 0x1A4, 0x1A5, 0x1AC, 0x1AD, 0x1B1, 0x1C1, _GROUP_5)
}
"""Opcodes that may write their operand."""


class Base(IntEnum):
    """The address that a frame is found by."""

    STACK_POINTER = 0
    FRAME_POINTER = 1
    SLOT = 2
    """The one in a word on the stack."""


class CodeFrame(NamedTuple):
    """The frame at an instruction, and at those after it up to the next `CodeFrame`.

    Attributes:
        offset: where the instruction begins.
        depth: bytes from the stack pointer to the return address; -1: not known.
        fp: bytes from the place where the frame pointer is saved to the return address; 0: the
            register has the caller's.
        base: the address that `depth` is from, instead of the stack pointer.
        slot: bytes from the stack pointer to the word of `Base.SLOT`.
    """

    offset: int
    depth: int
    fp: int
    base: Base = Base.STACK_POINTER
    slot: int = 0


_Frame = tuple[int, int, Base, int]
"""The fields of a `CodeFrame` behind `offset`."""


class Step(NamedTuple):
    """The effect of an instruction on the stack pointer and the frame pointer.

    Attributes:
        taken: bytes that it takes from the stack; None: it sets the stack pointer otherwise.
        saves, loads: the place that it saves the frame pointer in or loads it from, as a distance
            from the stack pointer behind it.
        to_fp: what it sets the frame pointer to, as a distance from the stack pointer.
        from_fp: what it sets the stack pointer to, as a distance from the frame pointer.
        from_slot: the place that it loads the stack pointer from, as a distance from it.
        stores: the place of a word that it writes, as a distance from the stack pointer behind it.
        is_leave: it does the latter, and pops the frame pointer.
        changes_fp: it may set the frame pointer to anything.
    """

    taken: int | None
    saves: int | None = None
    loads: int | None = None
    to_fp: int | None = None
    from_fp: int | None = None
    from_slot: int | None = None
    stores: int | None = None
    is_leave: bool = False
    changes_fp: bool = False


_AT_RETURN, _NOT_KNOWN = (0, 0, Base.STACK_POINTER, 0), (-1, 0, Base.STACK_POINTER, 0)
_MOST_POPPED = 112
"""Bytes behind the word that the stack pointer is taken from, with which rules are written."""
_SLOTS = range(1 << 13)
_NOTHING = Step(0)
_UNKNOWN, _CHANGES_FP = Step(None), Step(0, changes_fp=True)


def frames_of(code: bytes, address: int = 0) -> list[CodeFrame]:
    """Return the frames in some code, in ascending order; the first is at 0.

    Args:
        code: should begin with an instruction. If it does not, the first few frames may be wrong.
        address: of the code, in its file.
    """
    if not any(map(code.__contains__, _RETURNS)):  # zeros between functions, above all
        return [CodeFrame(0, -1, 0)] if code else []
    steps: dict[int, Step | None] = {}
    sources: dict[int, list[int]] = {}
    found: dict[int, _Frame | None] = {}
    todo: list[tuple[int, _Frame]] = []
    at = 0
    while at < len(code):
        try:
            instruction = decode(code, at)
        except CodeError:
            steps[at] = found[at] = None
            at += 1
            continue
        steps[at] = read_step(code, at, instruction)
        flow, target = instruction.flow, instruction.target
        if flow is Flow.RETURN:
            todo.append((at, _AT_RETURN))
        if flow in (Flow.JUMP, Flow.CONDITIONAL):
            sources.setdefault(target, []).append(at)
        behind = at + instruction.size
        if flow in (Flow.NEXT, Flow.CONDITIONAL) and not _ends(code, behind, address, instruction):
            sources.setdefault(behind, []).append(at)
        at = behind
    while todo:
        at, frame = todo.pop()
        if at in found:
            if _disagree(found[at], frame):
                _forget(at, found, sources)
            continue
        found[at] = frame
        for source in sources.get(at, ()):
            before = _before(steps[source], frame)
            if before is not None:
                todo.append((source, before))
    frames: list[CodeFrame] = []
    for at in steps:
        frame = found.get(at) or _NOT_KNOWN
        if not frames or frames[-1][1:] != frame:
            frames.append(CodeFrame(at, *frame))
    return frames


def _disagree(known: _Frame | None, frame: _Frame) -> bool:
    """Return True for two frames of an instruction that cannot both be right.

    Where they have different bases, both may be.
    """
    return known is not None and known != frame and known[2] == frame[2]


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


def _forget(at: int, found: dict[int, _Frame | None], sources: dict[int, list[int]]) -> None:
    """Make the frame at an instruction, and at all that lead there, unknown."""
    todo = [at]
    while todo:
        at = todo.pop()
        found[at] = None
        todo += [source for source in sources.get(at, ()) if found.get(source, at) is not None]


def _before(step: Step | None, frame: _Frame) -> _Frame | None:
    """Return the frame before an instruction, by the one after it; None: not known."""
    depth, fp, base, slot = frame
    if step is None:
        return None
    if base is Base.FRAME_POINTER:
        if step.to_fp is not None:
            depth += step.to_fp
            return (depth, fp, Base.STACK_POINTER, 0) if depth >= 0 else None
        return None if step.changes_fp else frame
    if base is Base.SLOT:
        is_written = step.stores is not None and abs(step.stores - slot) < _WORD
        is_loaded = step.loads is not None and not fp
        if step.taken is None or is_written or is_loaded or slot - step.taken not in _SLOTS:
            return None
        return depth, fp, base, slot - step.taken
    if step.is_leave:
        return None if fp else (depth + _WORD, depth + _WORD, Base.FRAME_POINTER, 0)
    if step.from_fp is not None:
        depth += step.from_fp
        return (depth, fp, Base.FRAME_POINTER, 0) if fp and depth >= 0 else None
    if step.from_slot is not None:
        is_near = step.from_slot in _SLOTS and depth <= _MOST_POPPED
        return (depth, fp, Base.SLOT, step.from_slot) if is_near else None
    if step.taken is None:
        return None
    if step.saves is not None and fp == depth - step.saves:
        fp = 0
    if step.loads is not None and not fp:  # else another value, and it is loaded again later
        fp = depth - step.loads
    depth -= step.taken
    return (depth, fp, base, 0) if depth >= 0 and fp >= 0 else None


def read_step(code: bytes, at: int, instruction: Instruction) -> Step:
    """Return what an instruction does to the two pointers."""
    opcode, operand = instruction.opcode, instruction.operand
    is_narrow = b"\x66" in instruction.prefixes
    if opcode in _PUSHES or opcode in _POPS:
        register = operand.base if operand is not None else -1
        if is_narrow or (register == _SP and opcode in _POPS):
            return _UNKNOWN._replace(changes_fp=True)
        is_fp = register == _FP
        if opcode in _PUSHES:
            return Step(_WORD, saves=0 if is_fp else None, stores=0)
        return Step(-_WORD, loads=-_WORD if is_fp else None, changes_fp=is_fp)
    if opcode in (*_PUSH_NUMBER, _PUSH_FLAGS):
        return _UNKNOWN if is_narrow else Step(_WORD, stores=0)
    if opcode == _POP_FLAGS:
        return _UNKNOWN if is_narrow else Step(-_WORD)
    if opcode in (_ENTER, _LEAVE):
        is_leave = opcode == _LEAVE and not is_narrow
        return _UNKNOWN._replace(is_leave=is_leave, changes_fp=True)
    if operand is None:
        return _CHANGES_FP if opcode == _EXCHANGE_FP else _NOTHING
    middle = operand.register & 7
    if opcode == _GROUP_5 and middle == _PUSH_MEMORY:
        return _UNKNOWN if is_narrow else Step(_WORD, stores=0)
    if opcode == _POP_MEMORY:
        return _UNKNOWN._replace(changes_fp=operand.is_register and operand.base == _FP)
    is_sp = operand.is_register and operand.base == _SP
    if opcode in _GROUP_1 and is_sp:
        return _added(code, at, instruction, middle)
    of_sp = not operand.is_register and operand.base == _SP and operand.index_register < 0
    moved = _moved(code, at, instruction, operand)
    if moved is not None:
        return moved
    if opcode == _ADDRESS and operand.register == _SP:
        is_plain = of_sp and instruction.wide
        return Step(-_displacement(code, at, instruction)) if is_plain else _UNKNOWN
    if of_sp and instruction.wide and operand.register == _SP and opcode == _LOAD:
        return _UNKNOWN._replace(from_slot=_displacement(code, at, instruction))
    if (opcode in _TO_REGISTER and operand.register == _SP) or (opcode in _TO_OPERAND and is_sp):
        return _UNKNOWN
    if of_sp and instruction.wide and opcode in (_LOAD, _STORE):
        place, is_fp = _displacement(code, at, instruction), operand.register == _FP
        if opcode == _STORE:
            return Step(0, saves=place if is_fp else None, stores=place)
        if is_fp:
            return Step(0, loads=place, changes_fp=True)
    return _CHANGES_FP if _may_change_fp(opcode, operand) else _NOTHING


def _moved(code: bytes, at: int, instruction: Instruction, operand: Operand) -> Step | None:
    """Return the effect of a move between the two pointers, by mov or lea; None: it is none."""
    opcode, wide = instruction.opcode, instruction.wide
    if operand.is_register and opcode in (_LOAD, _STORE):
        pair = operand.register, operand.base
        to, of = pair if opcode == _LOAD else pair[::-1]
        distance = 0
    elif opcode == _ADDRESS and not operand.is_register and operand.index_register < 0:
        to, of = operand.register, operand.base
        skipped = 4 if of == _SP else 3  # behind REX, opcode and ModRM
        distance = _displacement(code, at, instruction, skipped)
    else:
        return None
    if not wide or {to, of} != {_SP, _FP}:
        return None
    if to == _FP:
        return Step(0, to_fp=distance, changes_fp=True)
    return _UNKNOWN._replace(from_fp=distance)


def _may_change_fp(opcode: int, operand: Operand) -> bool:
    """Return True if an instruction may leave another address in the frame pointer.

    Others leave numbers there, and cannot be on the way to an instruction that follows it.
    """
    if operand.register == _FP and (opcode in _TO_REGISTER or opcode == _ADDRESS):
        return True
    is_fp = operand.is_register and operand.base == _FP
    return is_fp and (opcode in _TO_OPERAND or opcode in _GROUP_1 or opcode in _CONSTANTS)


def _added(code: bytes, at: int, instruction: Instruction, kind: int) -> Step:
    """Return what `add $n, %rsp` and its kin do."""
    if kind == _COMPARE:
        return _NOTHING
    if kind not in (_ADD, _SUB) or not instruction.wide:
        return _UNKNOWN
    end = at + instruction.size
    size = 1 if instruction.opcode == _GROUP_1[1] else 4
    number = int.from_bytes(code[end - size : end], "little", signed=True)
    return Step(number if kind == _SUB else -number)


def _displacement(code: bytes, at: int, instruction: Instruction, skipped: int = 4) -> int:
    """Return the displacement of an operand; `skipped` are REX, opcode, ModRM and SIB."""
    begin = at + len(instruction.prefixes) + skipped
    return int.from_bytes(code[begin : at + instruction.size], "little", signed=True)
