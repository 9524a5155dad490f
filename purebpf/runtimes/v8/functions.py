"""The names, scripts and lines of JavaScript functions.

A JSFunction leads to its SharedFunctionInfo, which all closures of a function share. That has the
name, or the ScopeInfo with the name, and the Script. A script has its source and, once somebody
asked for a line, the ends of its lines (src/objects/shared-function-info.h, script.h).
"""

from __future__ import annotations

from bisect import bisect_left

from purebpf.late_pattern import compile_later
from purebpf.runtimes.memory import UnreadableError
from purebpf.runtimes.v8.heap import MOST_TEXT, Heap, small_integer
from purebpf.tuples import NamedTuple

__all__ = ["Function", "Functions"]

_WORD = 8
_MANY_LOCALS = 75
"""Local variables of a scope from which on their names are in a table (kScopeInfoMaxInlined...)."""
_MOST_LOCALS = 1 << 16
_NAME_WORDS = 4
"""Words of a ScopeInfo behind the local variables in which its function's name is."""
_LONGEST_NAME = 512
_MOST_LINES = 1 << 20
_LITERAL, _LITERAL_BYTES = 4, 4
"""Behind the flags: the number of the function in its script."""
_LINE_END = compile_later("\r\n|[\n\r\u2028\u2029]")


class _Script(NamedTuple):
    """A script: its number, its name, the line on which it begins, the ends of its lines."""

    number: int
    name: str
    first_line: int
    ends: list[int]


class Function(NamedTuple):
    """A function, by its SharedFunctionInfo.

    Attributes:
        name: "handle"; "" for one without a name.
        file: the name of its script; "" where it has none.
        script, literal: the numbers of its script, and of the function in it: the same for the
            whole life of the process, while its objects move; -1 for V8's own functions.
        is_built_in: whether it is V8's own.
    """

    name: str
    file: str
    script: int
    literal: int
    is_built_in: bool


class Functions:
    """Reads functions and scripts, each once.

    Args:
        heap: the process's.
    """

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._layout = heap.layout
        self._known: dict[int, Function | None] = {}
        self._scripts: dict[int, _Script] = {}

    def shared_of(self, pointer: int) -> int:
        """The SharedFunctionInfo of a JSFunction; 0: it is none."""
        layout, heap = self._layout, self._heap
        if not layout.type_function_first <= heap.type(pointer) <= layout.type_function_last:
            return 0
        try:
            shared = heap.word(pointer, layout.function_shared)
        except UnreadableError:
            return 0
        return shared if heap.type(shared) == layout.type_shared else 0

    def find(self, shared: int) -> Function | None:
        """The function of a SharedFunctionInfo; None: it cannot be read."""
        if shared not in self._known:
            try:
                self._known[shared] = self._read(shared)
            except UnreadableError:
                self._known[shared] = None
        return self._known[shared]

    def numbers(self, shared: int) -> tuple[int, int] | None:
        """The numbers of a function's script, and of the function in it; None: it has none."""
        heap, layout = self._heap, self._layout
        try:
            script = heap.word(shared, layout.shared_script)
            if heap.type(shared) != layout.type_shared or heap.type(script) != layout.type_script:
                return None
            number = small_integer(heap.word(script, layout.script_id))
            return number, heap.number(shared, layout.shared_flags + _LITERAL, _LITERAL_BYTES)
        except UnreadableError:
            return None

    def line(self, shared: int, position: int) -> int:
        """The line of a character of a function's script; 0: not known."""
        if position < 0:
            return 0
        try:
            script = self._script_of(shared)
        except UnreadableError:
            return 0
        if script is None or not script.ends:
            return 0
        return script.first_line + bisect_left(script.ends, position) + 1

    def _read(self, shared: int) -> Function:
        heap, layout = self._heap, self._layout
        if heap.type(shared) != layout.type_shared:
            raise UnreadableError
        script = self._script_of(shared)
        literal = heap.number(shared, layout.shared_flags + _LITERAL, _LITERAL_BYTES)
        return Function(
            self._name(heap.word(shared, layout.shared_name)),
            script.name if script else "",
            script.number if script else -1,
            literal if script else -1,
            script is None,
        )

    def _name(self, holder: int) -> str:
        """The name of a function: a string, or in a ScopeInfo; "" if it has none."""
        heap = self._heap
        if heap.is_string(holder):
            return self._printable(holder)
        if heap.type(holder) != self._layout.type_scope:
            return ""
        count = small_integer(heap.word(holder, _WORD * (1 + self._layout.scope_locals)))
        if not 0 <= count <= _MOST_LOCALS:
            raise UnreadableError
        names = 2 * count if count <= _MANY_LOCALS else 1
        first = 1 + self._layout.scope_first + names
        for at in range(first, first + _NAME_WORDS):
            try:
                word = heap.word(holder, _WORD * at)
            except UnreadableError:
                break
            if heap.is_string(word) and (name := self._printable(word)):
                return name  # or the one that V8 inferred, which stands behind an empty name
        return ""

    def _printable(self, pointer: int) -> str:
        """A name, or the name of a file."""
        text = self._heap.string(pointer, _LONGEST_NAME)
        return "".join(each if each.isprintable() else "?" for each in text)

    def _script_of(self, shared: int) -> _Script | None:
        """The script of a function; None: it is V8's own."""
        heap, layout = self._heap, self._layout
        pointer = heap.word(shared, layout.shared_script)
        if heap.type(pointer) != layout.type_script:
            return None
        number = small_integer(heap.word(pointer, layout.script_id))
        if number not in self._scripts:
            name = heap.word(pointer, layout.script_name)
            self._scripts[number] = _Script(
                number,
                self._printable(name) if heap.is_string(name) else "",
                small_integer(heap.word(pointer, layout.script_line_offset)),
                self._line_ends(pointer),
            )
        return self._scripts[number]

    def _line_ends(self, script: int) -> list[int]:
        """The characters that end lines: as V8 has them, or else by the source; [] if unknown."""
        heap, layout = self._heap, self._layout
        try:
            ends = heap.word(script, layout.script_line_ends)
            if heap.type(ends) == layout.type_fixed_array:
                return [small_integer(word) for word in heap.words(ends, _MOST_LINES)]
            source = heap.word(script, layout.script_source)
            text = heap.string(source, MOST_TEXT)
        except UnreadableError:
            return []
        return [each.end() - 1 for each in _LINE_END.finditer(text)] + [len(text)]
