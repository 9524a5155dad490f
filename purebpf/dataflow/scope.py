"""The declarations that a function of a file with DWARF can see."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from iced_x86 import Register

from purebpf.dataflow.layout import find, is_record
from purebpf.dataflow.pointers import Pointer, State, pointer_of
from purebpf.dataflow.types import Type, byte_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from purebpf.dataflow.dwarf import DebugInfo, Function

__all__ = ["DwarfScope"]

_WORD = 8
_REGISTERS = (
    *(Register.RAX, Register.RDX, Register.RCX, Register.RBX),
    *(Register.RSI, Register.RDI, Register.RBP, Register.RSP),
    *(Register.R8, Register.R9, Register.R10, Register.R11),
    *(Register.R12, Register.R13, Register.R14, Register.R15),
)
"""By DWARF's numbers (System V AMD64 ABI, figure 3.36)."""


class DwarfScope:
    """The variables of a function; a `purebpf.dataflow.declarations.Scope`."""

    follows_elements = unwinds = True

    def __init__(self, info: DebugInfo, function: Function) -> None:
        self._info, self._function = info, function
        variables = function.variables
        self._registers = _Intervals(
            (one.start, one.end, _REGISTERS[one.operand], pointer, one.depth)
            for one in variables
            if one.operation == "DW_OP_reg" and one.operand < len(_REGISTERS)
            if (pointer := pointer_of(_only_member(one.type))) is not None
        )
        self._stack = [one for one in variables if one.operation == "DW_OP_fbreg"]

    def entered(self) -> Mapping[int, Pointer]:
        """Return nothing: `declared` has the parameters."""
        return {}

    def used(self, _address: int) -> Mapping[int, Pointer]:
        """Return nothing: DWARF describes local variables."""
        return {}

    def per_cpu(self, _address: int, *, is_plain: bool) -> None:  # noqa: ARG002
        """Return None: programs have no per-CPU variables."""

    def computed(self, _address: int) -> None:
        """Return None: programs have no such arithmetic."""

    def around(self, _pointer: Pointer, _size: int, _value: Pointer | None = None) -> None:
        """Return None: declarations say the struct."""

    def decoded(self, _pointer: Pointer | None, _bits: int) -> None:
        """Return None: it is not known what the bits of a program's pointers say."""

    def cast(self, _of: Type | None, _offset: int) -> None:
        """Return None: declarations say the type."""

    def is_offset_of_cpu(self, _address: int) -> bool:
        """Return False: programs have no per-CPU variables."""
        return False

    def jumps_to(self, _address: int) -> None:
        """Return None: compilers give retpolines of programs no names."""

    def declared(self, address: int) -> Mapping[int, Pointer]:
        """Return the pointers that variables hold in registers before the instruction there.

        Where two variables of one block share a register and differ in type, neither is named.
        """
        return self._registers.at(address)

    def on_stack(self, address: int, offset: int, state: State) -> tuple[Type | None, int] | None:
        """Return the type of the variable at an offset from the CFA, and the offset in it."""
        base = self._frame_base(state)
        if base is None:
            return None
        for one in self._stack:
            start = base + one.operand
            if one.start <= address < one.end and start <= offset < start + byte_size(one.type):
                return one.type, offset - start
        return None

    def _frame_base(self, state: State) -> int | None:
        base = self._function.frame_base
        if base is None:
            return None
        operation, number = base
        if operation == "DW_OP_call_frame_cfa":
            return 0
        if operation == "DW_OP_reg" and number < len(_REGISTERS):
            pointer = state.get(_REGISTERS[number])
            return pointer.offset if pointer is not None and pointer.of is None else None
        return None

    def at(self, address: int) -> tuple[Type | None, int] | None:
        """Return the type of the global variable at an address, and the offset in it."""
        found = self._info.variable(self._function.start, address)
        return None if found is None else (found.type, address - found.address)

    def returns(self, address: int) -> Type | None:
        """Return the type that the function at an address returns; None: unknown, or void."""
        function = self._info.function(address)
        return None if function is None or function.start != address else function.result


def _only_member(of: Type | None) -> Type | None:
    """Return the pointer that a class of eight bytes has only, as iterators do; else the type."""
    if not is_record(of) or byte_size(of) != _WORD:
        return of
    inside = find(of, 0, _WORD)
    return inside.type if inside.size == _WORD else of


class _Intervals:
    """The pointers in registers by address, of places that begin and end.

    A large function has thousands of places, and the flow asks for each instruction several times.
    """

    def __init__(self, places: Iterable[tuple[int, int, int, Pointer, int]]) -> None:
        listed = list(places)
        self._edges = sorted({edge for start, end, *_ in listed for edge in (start, end)})
        numbers = {edge: number for number, edge in enumerate(self._edges)}
        self._held: list[list[tuple[int, int, Pointer]]] = [[] for _ in self._edges]
        for start, end, register, pointer, depth in listed:
            for number in range(numbers[start], numbers[end]):
                self._held[number].append((depth, register, pointer))
        self._known: dict[int, Mapping[int, Pointer]] = {}

    def at(self, address: int) -> Mapping[int, Pointer]:
        """Return the pointer of each register whose places there agree about the type."""
        number = bisect_right(self._edges, address) - 1
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = {} if number < 0 else _agreed(self._held[number])
        return known


def _agreed(held: Iterable[tuple[int, int, Pointer]]) -> dict[int, Pointer]:
    """Return the pointer of each register: of the outermost variable, or of several that agree.

    Variables of inlined functions lead to the same object, or to its start.
    """
    found: dict[int, tuple[int, Pointer]] = {}
    unclear = set()
    for depth, register, pointer in sorted(held, key=lambda one: one[0]):
        known_depth, known = found.setdefault(register, (depth, pointer))
        if known_depth == depth and known.of is not pointer.of:
            unclear.add(register)
    return {key: pointer for key, (_, pointer) in found.items() if key not in unclear}
