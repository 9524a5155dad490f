"""The exits of a function of x86-64 code: its returns, and the jumps to other functions.

The walk goes from the first byte to the last, not along the branches, so that it sees the cases of
a switch, too; every direct jump has to lead to the start of an instruction. A function that another
one jumps to (a tail call) belongs to it: the call ends where that one returns. Unknown code is a
`CodeError`, never a guess: a probe in the middle of an instruction would break the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.stack_depth import depth_at
from purebpf.symbols.x86_64_code import (
    INSTRUCTION_POINTER,
    CodeError,
    Flow,
    Instruction,
    Operand,
    decode,
)
from purebpf.tuples import NamedTuple

__all__ = ["ALWAYS", "Exits", "FileCode", "find_exits", "least_size"]

ALWAYS = 16
"""The condition of a jump that has none; others are the low four bits of its opcode."""

_MOST_FUNCTIONS = 32
_MOST_BYTES = 1 << 18
_MOST_FOLLOWED = 1 << 14
"""Bytes of a function whose size is not known."""
_MOST_PLACES = 256
"""Each is a probe."""
_CHECKED = 1 << 10
"""Instructions between two calls of `FileCode.check`."""
_LOOK_BACK = 32
"""Instructions before an indirect jump that may say what its operand is."""
_BAD_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\xf0")
"""The kernel takes no probe at an instruction with one (arch/x86/kernel/uprobes.c)."""
_NOTRACK = 0x3E
_RAX, _RSP = 0, 4
_LEAVE, _ADD_CONSTANT = 0xC9, (0x81, 0x83)
_NOPS = frozenset((0x90, 0x11F, 0x11E, 0xCC))
_HALTS = frozenset((0x10B, 0xF4))
"""ud2 and hlt."""
_DEAD_ENDS = _HALTS | {0xE8}
"""Halts, and a call at the end, of a function that does not return."""
_IN_OPERAND = frozenset(b"\x80\x81\x83\xc0\xc1\xc6\xc7\xd0\xd1\xd2\xd3\xf7\xff")
"""Opcodes that write the operand of ModRM, and whose ModRM.reg is no register."""
_MOVE_FROM, _MOVE_TO, _SIGN_EXTEND = 0x8B, 0x89, 0x63
_ADD_TO, _ADD_FROM = 0x01, 0x03
_COMPARISONS = frozenset((0x38, 0x39, 0x3A, 0x3B, 0x84, 0x85, 0x1A3))
_PUSHES, _POPS, _CONSTANTS = range(0x50, 0x58), range(0x58, 0x60), range(0xB0, 0xC0)
_THUNKS = ("__x86_indirect_thunk", "__x86.indirect_thunk", "__llvm_retpoline")


class FileCode(Protocol):
    """The code of one file, by the addresses that it was linked for."""

    def code(self, address: int, size: int, /) -> bytes:
        """Bytes of code; fewer at the end of a segment."""

    def check(self) -> object:
        """Called now and then in long loops; it may raise."""

    def range_of(self, address: int, /) -> CodeRange | None:
        """The function, or part of one, that has an address; None: it is not known."""

    def is_part(self, address: int, /) -> bool:
        """Return True if a range is a part of a function that jumps to it, not a separate
        function.
        """

    def is_entry_like(self, address: int, /) -> bool | None:
        """Return True if the stack at an address is as at a function's entry; None: not known."""

    def names(self, address: int, /) -> tuple[str, ...]:
        """The symbols at an address."""

    def behind_stub(self, address: int, /) -> int:
        """Return the function of this file that an entry of its PLT leads to; 0: none, or it
        counts as one of another file.
        """


class Exits(NamedTuple):
    """Addresses in the file, in order.

    Attributes:
        returns: instructions that return.
        leaving: jumps to code that is not known here, of another file or by a pointer, each with
            its condition: the call is over for its function, and its result is not known.
        jumps: jumps to the functions of `entered` and to the start of the function itself, with
            their conditions.
        entered: functions that continue the call after a jump.
    """

    returns: tuple[int, ...]
    leaving: tuple[tuple[int, int], ...]
    jumps: tuple[tuple[int, int], ...]
    entered: tuple[int, ...]


def find_exits(file: FileCode, start: int) -> Exits:
    """The exits of the function that starts at an address.

    Raises:
        CodeError: its end is not known, or its code is not understood; says why.
    """
    return _Walk(file, start).exits()


def least_size(code: bytes) -> int:
    """Return how many of the first bytes certainly belong to the function that starts with them.

    It may be longer: code that only an indirect jump reaches is not counted, and the count ends at
    unknown instructions. A function that ends in a call is taken to go on behind the call.
    """
    at = reach = 0
    while at < len(code):
        try:
            instruction = decode(code, at)
        except CodeError:
            break
        at += instruction.size
        if instruction.flow is Flow.CONDITIONAL:
            reach = max(reach, instruction.target)
            continue
        is_end = instruction.flow is not Flow.NEXT or instruction.opcode in _HALTS
        if is_end and at > reach:
            break
    return at


class _Walk:
    """The walk over a function, its parts, and the functions that it jumps to."""

    def __init__(self, file: FileCode, start: int) -> None:
        self._file = file
        self._ranges: dict[int, CodeRange] = {}
        self._followed: dict[int, CodeRange] = {}
        self._starts: set[int] = set()
        self._targets: set[int] = set()
        self._returns: list[int] = []
        self._leaving: list[tuple[int, int]] = []
        self._jumps: list[tuple[int, int]] = []
        self._entered: list[int] = []
        self._waiting = [start]
        self._left = _MOST_BYTES

    def exits(self) -> Exits:
        """Walk until every range has been swept, and return the exits."""
        (start,) = self._waiting
        extent = self._file.range_of(start)
        if extent is None:
            raise CodeError("its end is not known")
        if extent.start != start or self._file.is_part(start):
            raise CodeError("no function starts there")
        outward: list[tuple[int, Instruction, int]] = []
        while self._waiting or outward:
            while self._waiting:
                outward += self._sweep(self._waiting.pop())
            inside, outward = outward, []
            for at, jump, target in inside:
                if not self._is_inside(target):
                    self._leave(at, jump, target)
                elif target == start or target in self._entered:
                    self._jumps.append((at, _condition(jump)))
                else:
                    self._targets.add(target)
        if not self._targets <= self._starts:
            wrong = min(self._targets - self._starts)
            raise CodeError(f"a jump leads into an instruction, at {wrong:#x}")
        found = Exits(
            tuple(sorted(set(self._returns))),
            tuple(sorted(set(self._leaving))),
            tuple(sorted(set(self._jumps))),
            tuple(sorted(set(self._entered))),
        )
        if sum(map(len, found)) > _MOST_PLACES:
            raise CodeError(f"it is left at more than {_MOST_PLACES} places")
        return found

    def _is_inside(self, address: int) -> bool:
        return any(one.start <= address < one.end for one in self._ranges.values())

    def _sweep(self, start: int) -> Iterator[tuple[int, Instruction, int]]:
        """Decode a range; its direct jumps, with their targets."""
        if self._is_inside(start):
            return
        extent = self._followed.get(start) or self._file.range_of(start)
        assert extent is not None
        start = extent.start
        self._ranges[start] = extent
        size = extent.end - start
        self._left -= size
        if self._left < 0 or len(self._ranges) > _MOST_FUNCTIONS:
            raise CodeError("it and the functions that it jumps to have too much code")
        code = self._file.code(start, size)
        if len(code) < size:
            raise CodeError(f"the code at {start:#x} is not in the file")
        instructions: list[tuple[int, Instruction]] = []
        at = 0
        while at < size:
            instruction = decode(code, at)
            instructions.append((start + at, instruction))
            at += instruction.size
            if not len(instructions) % _CHECKED:
                self._file.check()
        self._starts.update(address for address, _ in instructions)
        _check_end(instructions)
        has_table = any(_loads_from_table(instruction) for _, instruction in instructions)
        for index, (address, instruction) in enumerate(instructions):
            match instruction.flow:
                case Flow.RETURN:
                    if index and _writes_return_address(instructions[index - 1][1]):
                        raise CodeError(f"a jump through a retpoline at {address:#x}")
                    self._returns.append(_probed(address, instruction))
                case Flow.JUMP | Flow.CONDITIONAL:
                    yield address, instruction, start + instruction.target
                case Flow.INDIRECT:
                    self._indirect(instructions[max(0, index - _LOOK_BACK) : index + 1], has_table)
                case Flow.OTHER:
                    raise CodeError(f"a far jump or return at {address:#x}")

    def _leave(self, at: int, jump: Instruction, target: int) -> None:
        """Handle a direct jump out of all ranges so far."""
        file = self._file
        is_stub = _is_stub(file.code(target, 16))
        if is_stub:
            target = file.behind_stub(target)
        if not target:
            self._leaving.append((_probed(at, jump), _condition(jump)))
            return
        if is_stub and self._is_inside(target):
            self._jumps.append((_probed(at, jump), _condition(jump)))
            self._targets.add(target)
            return
        if any(name.startswith(_THUNKS) for name in file.names(target)):
            raise CodeError(f"a jump through a retpoline at {at:#x}")
        extent = file.range_of(target)
        if extent is None:
            if not self._follow(at, target):
                why = f"the jump at {at:#x} leads to {target:#x}, where no function is known"
                raise CodeError(why)
            extent = self._followed[target]
        self._waiting.append(target)
        if extent.start != target:  # compilers make such jumps into cold parts alone
            self._targets.add(target)
        elif not file.is_part(target):
            self._entered.append(target)
            self._jumps.append((_probed(at, jump), _condition(jump)))

    def _follow(self, at: int, target: int) -> bool:
        """Find the end of a function without a symbol by its code, as stripped files of musl have.

        Returns:
            False: it may be a cold part of the function that jumps to it, or have cases of a switch
            behind the code that is seen.
        """
        jumping = next(one for one in self._ranges.values() if one.start <= at < one.end)
        before = self._file.code(jumping.start, jumping.end - jumping.start)
        if depth_at(before, at - jumping.start) != 0:
            return False
        code = self._file.code(target, _MOST_FOLLOWED)
        size = least_size(code)
        place, last = 0, None
        while place < size:
            last = decode(code, place)
            place += last.size
            if last.flow is Flow.INDIRECT:
                return False
        if last is None or (last.flow is Flow.NEXT and last.opcode not in _HALTS):
            return False
        self._followed[target] = CodeRange(target, target + size)
        return True

    def _indirect(self, before: list[tuple[int, Instruction]], has_table: bool) -> None:
        """An indirect jump, the last of these: to a case of a switch, or out of the function.

        Raises:
            CodeError: it may be either.
        """
        address, jump = before[-1]
        if _NOTRACK in jump.prefixes:
            return
        leads = _kind_of(before)
        is_entry_like = self._file.is_entry_like(address)
        if leads == "case" or is_entry_like is False:
            return
        if leads == "unknown" and has_table:
            raise CodeError(f"the indirect jump at {address:#x} is not understood")
        self._leaving.append((_probed(address, jump), ALWAYS))


def _probed(address: int, instruction: Instruction) -> int:
    if _BAD_PREFIXES & set(instruction.prefixes):
        raise CodeError(f"the kernel takes no probe at {address:#x}")
    return address


def _condition(jump: Instruction) -> int:
    if jump.flow == Flow.JUMP:
        return ALWAYS
    if jump.condition < 0:
        raise CodeError("a jump out of the function by the value of rcx")
    return jump.condition


def _writes_return_address(instruction: Instruction) -> bool:
    """Return True for `mov %reg, (%rsp)`: a `ret` behind it jumps to the register's value."""
    memory = _memory(instruction)
    return instruction.opcode == _MOVE_TO and memory is not None and memory.base == _RSP


def _check_end(instructions: list[tuple[int, Instruction]]) -> None:
    """The last instruction leads nowhere else.

    Raises:
        CodeError: the code runs into the bytes behind it.
    """
    at, last = next(
        (one for one in reversed(instructions) if one[1].opcode not in _NOPS), instructions[0]
    )
    leads = last.flow not in (Flow.NEXT, Flow.CONDITIONAL)
    if not (leads or _is_indirect_call(last) or last.opcode in _DEAD_ENDS):
        raise CodeError(f"the code runs into another function behind {at:#x}")


def _is_stub(code: bytes) -> bool:
    """Return True if code is an entry of a PLT: a jump to the address in a word of the file."""
    at = 0
    try:
        for _ in range(2):
            instruction = decode(code, at)
            operand = instruction.operand
            if instruction.flow == Flow.INDIRECT and operand is not None:
                return not operand.is_register and operand.base == INSTRUCTION_POINTER
            at += instruction.size
    except CodeError:
        pass
    return False


def _memory(instruction: Instruction) -> Operand | None:
    operand = instruction.operand
    return None if operand is None or operand.is_register else operand


def _loads_from_table(instruction: Instruction) -> bool:
    """Return True if the instruction reads an element of an array of offsets or of addresses."""
    memory = _memory(instruction)
    if memory is None or memory.index_register < 0:
        return False
    if instruction.opcode == _SIGN_EXTEND:
        return memory.scale == 4  # noqa: PLR2004
    is_load = instruction.opcode == _MOVE_FROM or instruction.flow == Flow.INDIRECT
    return is_load and memory.scale == 8  # noqa: PLR2004


def _kind_of(before: list[tuple[int, Instruction]]) -> str:
    """The target of the indirect jump at the end of these: "case", "pointer", or "unknown"."""
    jump = before[-1][1]
    operand = jump.operand
    assert operand is not None
    if not operand.is_register:
        return _kind_of_memory(operand)
    wanted = {operand.base}
    for _, instruction in reversed(before[:-1]):
        if instruction.flow in (Flow.JUMP, Flow.RETURN, Flow.INDIRECT):
            return "unknown"
        is_call = instruction.opcode == 0xE8 or _is_indirect_call(instruction)  # noqa: PLR2004
        if is_call:
            return "pointer" if _RAX in wanted else "unknown"
        if _tears_down(instruction):
            return "pointer"
        written = _written(instruction)
        if written not in wanted:
            continue
        source = instruction.operand
        if source is None:
            return "unknown"
        if instruction.opcode in (_ADD_TO, _ADD_FROM) and source.is_register:
            wanted |= {source.base, source.register}
            continue
        if instruction.opcode == _SIGN_EXTEND and _loads_from_table(instruction):
            return "case"
        if instruction.opcode in (_MOVE_FROM, _MOVE_TO) and len(wanted) == 1:
            if not source.is_register:
                return _kind_of_memory(source)
            wanted = {source.register if instruction.opcode == _MOVE_TO else source.base}
            continue
        if len(wanted) == 1:
            return "unknown"
    return "unknown"


def _kind_of_memory(memory: Operand) -> str:
    """The kind of target that a word of memory is."""
    if memory.index_register < 0:
        return "pointer"
    return "case" if memory.base == -1 and memory.scale == 8 else "unknown"  # noqa: PLR2004


def _is_indirect_call(instruction: Instruction) -> bool:
    operand = instruction.operand
    return instruction.opcode == 0xFF and operand is not None and operand.register & 7 == 2  # noqa: PLR2004


def _tears_down(instruction: Instruction) -> bool:
    """Return True for an instruction of an epilogue: a switch does not follow one."""
    operand = instruction.operand
    if instruction.opcode in _POPS or instruction.opcode == _LEAVE:
        return True
    return (
        instruction.opcode in _ADD_CONSTANT
        and operand is not None
        and operand.is_register
        and (operand.register & 7, operand.base) == (0, _RSP)
    )


def _written(instruction: Instruction) -> int:
    """The register that an instruction may write; -1: none, or more than this looks at."""
    operand, opcode = instruction.operand, instruction.opcode
    if operand is None or opcode in _COMPARISONS or opcode < 0 or opcode in _PUSHES:
        return -1
    if opcode in _POPS or opcode in _CONSTANTS:
        return operand.base
    to_operand = opcode in (0x88, _MOVE_TO) or (opcode < 0x40 and not opcode & 2)  # noqa: PLR2004
    in_operand = opcode in (
        0x80,
        0x81,
        0x83,
        0xC0,
        0xC1,
        0xC6,
        0xC7,
        0xD0,
        0xD1,
        0xD2,
        0xD3,
        0xF7,
        0xFF,
    )
    if to_operand or in_operand:
        return operand.base if operand.is_register else -1
    return operand.register
