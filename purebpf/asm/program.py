"""`Program` and `Function`: instructions with names for their targets, and lines of Python."""

from __future__ import annotations

import sys
from bisect import bisect_left

from purebpf.abi import assembler
from purebpf.abi.assembler import R10, Assembler, Label, Register
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import CALL, INSN_SIZE, PSEUDO_CALL, PSEUDO_FUNC
from purebpf.errors import SchemaError
from purebpf.spec import Relocation, RelocationKind
from purebpf.tuples import NamedTuple

__all__ = ["Function", "MapName", "Program", "SourceLine", "Stack"]

_ARGUMENTS = 5


class MapName(str):
    """The name of a map, as an argument of a helper."""

    __slots__ = ()


class Stack(NamedTuple):
    """The address of `offset` bytes from where the stack ends, as an argument: -512 to -1."""

    offset: int


class SourceLine(NamedTuple):
    """A line of another language than Python, for which instructions are written."""

    file: str
    line: int
    text: str


class _Line(NamedTuple):
    at: int
    file: str
    line: int
    text: str = ""


class Function(Assembler):
    """A function under construction: an `Assembler` with references by name.

    Attributes:
        name: as the kernel shows it: letters, digits and `_`.
        relocations: the targets of instructions.
        lines: which line of Python wrote the instructions from an index on.
        source: the line to name instead, for a compiler of another language.
    """

    source: SourceLine | None = None

    def __init__(self, name: str) -> None:
        super().__init__()
        if not (name.isidentifier() and name.isascii()):
            raise SchemaError(f"{name!r} is not a name for a program: use letters, digits and _")
        self.name = name
        self.relocations: list[Relocation] = []
        self.lines: list[_Line] = []

    def map(self, register: int, map_fd: int | str) -> None:
        """`register` = a map, by its descriptor, or by its name in the object."""
        if isinstance(map_fd, str):
            self._refer(RelocationKind.MAP, map_fd)
            map_fd = 0
        super().map(register, map_fd)

    def map_value(self, register: int, map_fd: int | str, offset: int = 0) -> None:
        """`register` = the address of a one-entry array's value, `offset` bytes in.

        Linux 5.2 (commit d8eca5bbb2be).
        """
        if isinstance(map_fd, str):
            self._refer(RelocationKind.DATA, map_fd, offset)
            map_fd = 0
        super().map_value(register, map_fd, offset)

    def function(self, register: int, label: Label | str) -> None:
        """`register` = a function of the object by its name, for a helper to call.

        Linux 5.13 (commit 69c087ba6225).
        """
        self._refer(RelocationKind.FUNCTION, self._name_of(label))
        self._wide(register, PSEUDO_FUNC, 0, 0)

    def call_function(self, label: Label | str) -> None:
        """Call a function of the object by its name; R1 to R5 are gone afterwards.

        Linux 4.16 (commit cc8b0b92a169).
        """
        self._refer(RelocationKind.CALL, self._name_of(label))
        self._emit(CALL, 0, PSEUDO_CALL, imm=-1)

    def call_extern(self, name: str) -> None:
        """Call a function that the object lacks, and that is linked into it before it is loaded.

        `purebpf.stacks.load` has `user_stack` and `kernel_stack`. R1 to R5 are gone afterwards.
        """
        self._refer(RelocationKind.EXTERN, name)
        self._emit(CALL, 0, PSEUDO_CALL, imm=-1)

    def call_helper(self, helper: str | int, *arguments: int | MapName | Stack) -> None:
        """Put arguments into R1 to R5, in this order, and call a helper function.

        Args:
            helper: its name, without "bpf_", or its number.
            arguments: a `Register`, a number, the name of a map, or a place on the stack.

        Raises:
            SchemaError: there is no such helper; too many arguments; or a register among R1 to R5
                that an argument before it has overwritten.
        """
        number = _helper_number(helper) if isinstance(helper, str) else helper
        if len(arguments) > _ARGUMENTS:
            raise SchemaError(f"a helper takes 5 arguments at most, not {len(arguments)}")
        for target, argument in enumerate(arguments, 1):
            self._pass(Register(target), argument)
        self.call(number)

    def _pass(self, target: Register, argument: int | MapName | Stack) -> None:
        if isinstance(argument, MapName):
            self.map(target, argument)
        elif isinstance(argument, Stack):
            self.copy(target, R10)
            self.alu("+=", target, argument.offset)
        elif isinstance(argument, Register):
            if 1 <= argument < target:
                raise SchemaError(f"argument {target} is r{argument}, which now has argument "
                                  f"{argument}: keep it in r6 to r9")  # fmt: skip
            if argument != target:
                self.copy(target, argument)
        else:
            self.move(target, argument)

    def _refer(self, kind: RelocationKind, target: str, addend: int = 0) -> None:
        self.relocations.append(Relocation(len(self) * INSN_SIZE, kind, target, addend))

    def drop_unreachable(self) -> dict[int, int]:
        """Drop instructions that nothing leads to, with their relocations and lines."""
        places = super().drop_unreachable()
        self.relocations = [
            item._replace(offset=places[item.offset // INSN_SIZE] * INSN_SIZE)
            for item in self.relocations
            if item.offset // INSN_SIZE in places
        ]
        kept = sorted(places)
        lines: dict[int, _Line] = {}
        for line, following in zip(self.lines, [*self.lines[1:], None], strict=True):
            end = following.at if following is not None else sys.maxsize
            first = next((at for at in kept[bisect_left(kept, line.at) :] if at < end), None)
            if first is not None:
                lines[places[first]] = line._replace(at=places[first])
        self.lines = list(lines.values())
        return places

    @staticmethod
    def _name_of(label: Label | str) -> str:
        if not isinstance(label, str):
            raise SchemaError("functions of an object are called by name, not by label")
        return label

    def _emit(
        self, opcode: int, dst: int = 0, src: int = 0, offset: int = 0, *, imm: int = 0
    ) -> None:
        file, line, text = self.source or (*_caller(), "")
        if not self.lines or self.lines[-1][1:3] != (file, line):
            self.lines.append(_Line(len(self), file, line, text))
        super()._emit(opcode, dst, src, offset, imm=imm)


class Program(Function):
    """A function that the kernel runs at an attach point.

    Args:
        name: as the kernel shows it.
        section: its kind of program, as in SEC() of C: "raw_tp/sys_enter", "?xdp".
    """

    def __init__(self, name: str, section: str) -> None:
        super().__init__(name)
        self.section = section


_OWN_FILES = (__file__, assembler.__file__)


def _caller() -> tuple[str, int]:
    """The file and line that called the assembler."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads source files for each call
    while frame.f_code.co_filename in _OWN_FILES and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _helper_number(name: str) -> int:
    member = f"BPF_FUNC_{name.removeprefix('bpf_')}"
    if member in bpf_func_id.__members__:
        return bpf_func_id[member]
    from difflib import get_close_matches

    known = [member.name.removeprefix("BPF_FUNC_") for member in bpf_func_id]
    close = get_close_matches(name, known)
    raise SchemaError(f"unknown helper {name!r}; similar: {', '.join(close) or 'none'}")
