"""V8's generated code: the Code of a return address, and the functions active in it.

Before the instructions stands an InstructionStream, whose Code has the tables; before 11 both are
one. A return address leads to it by the map of InstructionStreams, which all of them begin with.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from purebpf.runtimes.memory import UnreadableError
from purebpf.runtimes.v8.code_ranges import CodeRanges
from purebpf.runtimes.v8.functions import Functions
from purebpf.runtimes.v8.heap import Heap, small_integer
from purebpf.runtimes.v8.layout import ABSENT
from purebpf.runtimes.v8.tables import (
    SAFEPOINT_HEADER,
    Position,
    Safepoint,
    TranslatedFrame,
    baseline_bytecode,
    every_position,
    find_position,
    find_safepoint,
    inlined_calls,
    read_safepoint_header,
    translated_frames,
)
from purebpf.tuples import NamedTuple

__all__ = ["ActiveFunction", "Code", "CodeReader"]

_WORD = 8
_MOST_CODE = 1 << 19
"""Bytes of one function's code that are searched for its begin."""
_PIECE = 1 << 12
_STREAM_CODE = (8, 16, 24)
"""Places of the Code in an InstructionStream."""
_KIND_MASK = 15
_MOST_INLINED = 64
_CLEARED = 2
"""The bit of a weak pointer."""
_DEOPT_HEADER, _DEOPT_ENTRY = 4, 3
"""Words of deoptimisation data from the positions to the entries, and of an entry."""
_LEAST_POINTER = 1 << 16
_RETURN, _RETURN_MORE = b"\xc3", b"\xc2"
_PROLOGUES = (b"\x55\x48\x89\xe5", b"\x55\x48\x8b\xec")
"""push %rbp; mov %rsp, %rbp."""
_EPILOGUES = (b"\x5d\xc3", b"\x5d\xc2")
"""pop %rbp; ret."""


class Code(NamedTuple):
    """Generated code.

    Attributes:
        at: the pointer to its Code.
        start, end: addresses of its instructions.
        kind: of the tier that made it.
    """

    at: int
    start: int
    end: int
    kind: int


class ActiveFunction(NamedTuple):
    """A function that is active in a frame: its SharedFunctionInfo, and the line; 0: unknown."""

    shared: int
    line: int


class CodeReader:
    """Reads generated code.

    Args:
        heap: the process's objects.
        functions: its functions.
        sizes: the bytes of each bytecode, as V8 has them (kBytecodeSizes); b"": not known.
        ranges: where V8's code is.

    Attributes:
        layout: of its V8.
    """

    def __init__(self, heap: Heap, functions: Functions, sizes: bytes, ranges: CodeRanges) -> None:
        self._heap = heap
        self._functions = functions
        self.layout = self._layout = heap.layout
        self._sizes = sizes
        self._ranges = ranges
        self._maps: dict[int, bool] = {}
        self._known: dict[int, Code | None] = {}

    def find(self, pc: int) -> Code | None:
        """The code that holds an address; None: there is none."""
        if pc not in self._known:
            self._known[pc] = self._search(pc)
        return self._known[pc]

    def leaf_words(self, pc: int) -> int:
        """The words on the stack up to a leaf's return address, and this one, by the code at it.

        0: it has its frame, or is in a state that is not known. bpf_src/include/v8_steps.h has the
        same rules.
        """
        try:
            code = self._heap.raw(pc - 1, 5)
        except UnreadableError:
            return 0
        now = code[1:]
        if now[:1] == _RETURN or (now[:1] == _RETURN_MORE and not now[2]) or now in _PROLOGUES:
            return 1
        return 2 if code[:4] in _PROLOGUES or now[:2] in _EPILOGUES else 0

    def bytecode_line(self, shared: int, bytecode: int, offset: int) -> int:
        """The line of a bytecode of a function; 0: not known."""
        heap, layout = self._heap, self._layout
        try:
            table = heap.byte_array(heap.word(bytecode, layout.bytecode_positions))
        except UnreadableError:
            return 0
        position = find_position(table, offset, layout.version)
        return self._functions.line(shared, position.offset)

    def bytecode_offset(self, bytecode: int, word: int) -> int | None:
        """The offset that a frame of the interpreter holds; None: its array does not have it."""
        heap, layout = self._heap, self._layout
        try:
            if heap.type(bytecode) != layout.type_bytecode:
                return None
            offset = small_integer(word) - (layout.bytecode_data - 1)
            size = small_integer(heap.word(bytecode, _WORD))
        except UnreadableError:
            return None
        return offset if 0 <= offset < size else None

    def baseline(self, code: Code, shared: int, bytecode: int, pc: int) -> ActiveFunction:
        """The function of a frame of baseline code."""
        heap, layout = self._heap, self._layout
        try:
            table = heap.byte_array(heap.word(code.at, layout.code_positions))
            size = small_integer(heap.word(bytecode, _WORD))
            raw = self._heap.raw(bytecode - 1 + layout.bytecode_data, size)
        except UnreadableError:
            return ActiveFunction(shared, 0)
        offset = baseline_bytecode(table, raw, self._sizes, pc - code.start)
        if offset is None or heap.type(bytecode) != layout.type_bytecode:
            return ActiveFunction(shared, 0)
        return ActiveFunction(shared, self.bytecode_line(shared, bytecode, offset))

    def baseline_of(self, code: Code, shared: int, pc: int) -> ActiveFunction:
        """The function of baseline code, by the bytecodes that it was made of."""
        try:
            bytecode = self._bytecode_of(shared)
            if self._bytecode_behind(self._heap.word(code.at, self._layout.code_deopt)) != bytecode:
                return ActiveFunction(shared, 0)
        except UnreadableError:
            return ActiveFunction(shared, 0)
        return self.baseline(code, shared, bytecode, pc)

    def lines_of(self, shared: int) -> list[tuple[int, int]]:
        """The first bytecode and the line of each entry of a function's table.

        Raises:
            UnreadableError: its bytecodes are not there.
        """
        heap, layout = self._heap, self._layout
        bytecode = self._bytecode_of(shared)
        if heap.type(bytecode) != layout.type_bytecode:
            raise UnreadableError
        table = heap.byte_array(heap.word(bytecode, layout.bytecode_positions))
        return [
            (offset, self._functions.line(shared, position.offset))
            for offset, position in every_position(table, layout.version)
        ]

    def optimisation(self, code: Code) -> int:
        """The number of a compilation of optimised code; -1: it cannot be read."""
        heap, layout = self._heap, self._layout
        try:
            deopt = heap.word(code.at, layout.code_deopt)
            return small_integer(heap.element(deopt, layout.deopt_optimisation))
        except UnreadableError:
            return -1

    def interrupted(self, code: Code, pc: int) -> list[ActiveFunction] | None:
        """The functions of an instruction of TurboFan's code; None: its tables do not say."""
        if code.kind != self._layout.kind_turbofan:
            return None
        try:
            table = self._positions(code)
            position = find_position(table, pc - code.start, self._layout.version)
            return self._by_positions(code, position)
        except UnreadableError:
            return None

    def optimised(self, code: Code, pc: int) -> list[ActiveFunction] | None:
        """The functions at a return address of optimised code, innermost first.

        None: its tables do not have the address, or cannot be read.
        """
        try:
            return self._optimised(code, pc)
        except UnreadableError:
            return None

    def _optimised(self, code: Code, pc: int) -> list[ActiveFunction] | None:
        is_maglev = code.kind == self._layout.kind_maglev
        place = self._safepoint(code, pc, is_maglev=is_maglev)
        if place is None:
            return None
        active = self._by_translation(code, place.deopt)
        if active is None and not is_maglev:
            table = self._positions(code)
            position = find_position(table, place.pc - 1, self._layout.version)
            active = self._by_positions(code, position)
        return active

    def _positions(self, code: Code) -> bytes:
        try:
            return self._heap.byte_array(self._heap.word(code.at, self._layout.code_positions))
        except UnreadableError:
            return b""

    def _safepoint(self, code: Code, pc: int, *, is_maglev: bool) -> Safepoint | None:
        header = self._heap.raw(code.end, SAFEPOINT_HEADER)
        table = read_safepoint_header(header, self._layout.version, is_maglev=is_maglev)
        if table is None:
            return None
        raw = self._heap.raw(code.end, table.size)
        return find_safepoint(table, raw, pc - code.start)

    def _by_positions(self, code: Code, position: Position) -> list[ActiveFunction] | None:
        """Follow the calls that were inlined."""
        layout, heap = self._layout, self._heap
        deopt = heap.word(code.at, layout.code_deopt)
        root = self._shared(heap.element(deopt, layout.deopt_shared))
        calls = list(inlined_calls(heap.byte_array(heap.element(deopt, layout.deopt_positions))))
        literals = heap.element(deopt, layout.deopt_literals)
        active: list[ActiveFunction] = []
        while position.inlined and len(active) < _MOST_INLINED:
            if position.inlined > len(calls):
                return None
            caller, function = calls[position.inlined - 1]
            shared = self._literal(literals, function) if function >= 0 else root
            active.append(ActiveFunction(shared, self._functions.line(shared, position.offset)))
            position = caller
        active.append(ActiveFunction(root, self._functions.line(root, position.offset)))
        return active

    def _by_translation(self, code: Code, deopt: int) -> list[ActiveFunction] | None:
        """The frames of bytecode that this one would become."""
        layout, heap = self._layout, self._heap
        if deopt < 0:
            return None
        data = heap.word(code.at, layout.code_deopt)
        entry = layout.deopt_positions + _DEOPT_HEADER + _DEOPT_ENTRY * deopt
        start = small_integer(heap.element(data, entry + 1))
        frames = translated_frames(heap.byte_array(heap.element(data, 0)), start, layout.version)
        if not frames:
            return None
        active = [self._translated(data, frame) for frame in reversed(frames)]
        return [each for each in active if each is not None]

    def _translated(self, data: int, frame: TranslatedFrame) -> ActiveFunction | None:
        """A frame of bytecode, or of a function of V8's own; None: it is not known which."""
        heap, layout = self._heap, self._layout
        literals = heap.element(data, layout.deopt_literals)
        if not frame.has_bytecode:
            function = heap.element(literals, frame.literal) & ~_CLEARED
            shared = self._functions.shared_of(function)
            return ActiveFunction(shared, 0) if shared else None
        shared = self._literal(literals, frame.literal)
        if layout.has_protected:
            arrays = heap.element(data, layout.deopt_literals - 1)
            bytecode = heap.element(arrays, frame.array)
        else:
            bytecode = self._bytecode_of(shared)
        if heap.type(bytecode) != layout.type_bytecode:
            raise UnreadableError
        return ActiveFunction(shared, self.bytecode_line(shared, bytecode, frame.bytecode))

    def _bytecode_of(self, shared: int) -> int:
        """The bytecodes of a function, through its baseline code if it has some."""
        return self._bytecode_behind(self._heap.word(shared, self._layout.shared_data))

    def _bytecode_behind(self, pointer: int) -> int:
        """The bytecodes that data of a function, or of baseline code, lead to."""
        heap, layout = self._heap, self._layout
        if heap.type(pointer) == layout.type_code:
            pointer = heap.word(pointer, layout.code_deopt)
        if heap.type(pointer) == layout.type_interpreter:
            pointer = heap.word(pointer, _WORD)
        return pointer

    def _literal(self, literals: int, at: int) -> int:
        """A function among the literals, to which they have weak pointers."""
        return self._shared(self._heap.element(literals, at) & ~_CLEARED)

    def _shared(self, pointer: int) -> int:
        """A SharedFunctionInfo, or the one in a wrapper."""
        for _ in range(2):
            if self._heap.type(pointer) == self._layout.type_shared:
                return pointer
            pointer = self._heap.word(pointer, _WORD)
        raise UnreadableError

    # The begin of code

    def _search(self, pc: int) -> Code | None:
        """Go back from an address to the map of an InstructionStream."""
        low = max(self._ranges.region(pc), pc - _MOST_CODE) & ~(_WORD - 1)
        end = pc & ~(_WORD - 1)
        while end > low:
            start = max(low, (end - 1) & -_PIECE)
            try:
                raw = self._heap.raw(start, end - start)
            except UnreadableError:
                return None
            words = struct.unpack(f"<{len(raw) // _WORD}Q", raw)
            for at in range(len(words) - 1, -1, -1):
                if words[at] & 3 == 1 and words[at] > _LEAST_POINTER and self._is_map(words[at]):
                    return self._stream(start + _WORD * at, pc)
            end = start
        return None

    def _is_map(self, word: int) -> bool:
        """Return True for the map of InstructionStreams."""
        known = self._maps.get(word)
        if known is None:
            layout = self._layout
            try:
                known = self._heap.number(word, layout.map_type, 2) == layout.type_stream
            except UnreadableError:
                known = False
            self._maps[word] = known and self._heap.type(word) == layout.type_map
        return self._maps[word]

    def _stream(self, at: int, pc: int) -> Code | None:
        """The code of an InstructionStream, if it holds an address."""
        layout = self._layout
        for pointer in self._codes_of(at):
            try:
                code = self._code(pointer)
            except UnreadableError:
                continue
            if layout.code_header == ABSENT and self._heap.type(pointer) != layout.type_code:
                continue
            if code.start <= pc - 1 < code.end:
                return code
        return None

    def _codes_of(self, at: int) -> Sequence[int]:
        if self._layout.code_header != ABSENT:
            return (at + 1,)
        found = []
        for offset in _STREAM_CODE:
            try:
                found.append(self._heap.word(at + 1, offset))
            except UnreadableError:
                break
        return found

    def _code(self, pointer: int) -> Code:
        heap, layout = self._heap, self._layout
        if layout.code_header != ABSENT:
            start = pointer - 1 + layout.code_header
        else:
            start = heap.word(pointer, layout.code_start)
        size = heap.number(pointer, layout.code_size, 4)
        kind = heap.number(pointer, layout.code_flags, 4) & _KIND_MASK
        return Code(pointer, start, start + size, kind)
