"""The functions of V8's code that BPF met, read when it meets it first.

Functions and code move, and code is freed. A function is the one that BPF met if its script and its
number in that are the same; code counts only if it is that function's.
"""

from __future__ import annotations

from typing import Protocol

from purebpf.observe.runtimes.v8.v8_process import V8Reading
from purebpf.runtimes.memory import UnreadableError
from purebpf.runtimes.v8.code import ActiveFunction, Code
from purebpf.runtimes.v8.functions import Function
from purebpf.runtimes.v8.javascript_frame import ANONYMOUS, JavaScriptFrame
from purebpf.tuples import NamedTuple

__all__ = ["V8Code", "V8Record", "read_v8_code"]

_NUMBER_BITS = 32


class V8Record(Protocol):
    """The part of some code that BPF has sent, see `JavaRecord`."""

    @property
    def address(self) -> int:
        """The numbers of the script and of the function."""

    @property
    def method(self) -> int:
        """The SharedFunctionInfo."""

    @property
    def pc(self) -> int:
        """An address in generated code."""

    @property
    def is_interpreted(self) -> bool:
        """True if the interpreter runs it."""


class V8Code(NamedTuple):
    """Functions that are active at an address of generated code, or in the interpreter.

    Attributes:
        active: innermost first.
        lines: for the interpreter: the first bytecode and the line of each entry, in their order.
        optimisation: the number of its compilation; -1 for code that holds no other functions.
    """

    active: tuple[JavaScriptFrame, ...]
    lines: tuple[tuple[int, int], ...] = ()
    optimisation: int = -1

    def frames(self, place: int) -> list[JavaScriptFrame]:
        """The frames; `place` is the bytecode of a frame of the interpreter."""
        if not self.lines:
            return list(self.active)
        line = 0
        for first, number in self.lines:
            if first > place:
                break
            line = number
        return [self.active[0]._replace(line=line)]

    def is_other(self, now: V8Code) -> bool:
        """Return True if `now`, at the same address, is another compilation of the function."""
        return now.optimisation not in (-1, self.optimisation)

    def root(self) -> V8Code:
        """The function alone, without those that it inlined."""
        return V8Code((self.active[-1]._replace(line=0),))


def read_v8_code(record: V8Record, reading: V8Reading) -> V8Code | None:
    """Read the functions of some code; None: the function is not there any more."""
    numbers = record.address >> _NUMBER_BITS, record.address & (1 << _NUMBER_BITS) - 1
    function = reading.functions.find(record.method)
    if function is None or (function.script, function.literal) != numbers:
        return None
    if record.is_interpreted:
        code = _interpreted(record.method, function, reading)
    else:
        code = _generated(record, function, reading)
    return code if reading.is_still(record.method, *numbers) else None


def _interpreted(shared: int, function: Function, reading: V8Reading) -> V8Code:
    active = (_frame(function, 0),)
    try:
        return V8Code(active, tuple(reading.code.lines_of(shared)))
    except UnreadableError:
        return V8Code(active)


def _generated(record: V8Record, function: Function, reading: V8Reading) -> V8Code:
    code = reading.code.find(record.pc)
    alone = V8Code((_frame(function, 0),))
    if code is None:
        return alone
    if code.kind == reading.code.layout.kind_baseline:
        active = reading.code.baseline_of(code, record.method, record.pc - 1)
        return V8Code((_frame(function, active.line),))
    functions = _optimised(code, record.pc, reading)
    if not functions or not _is_same(functions[-1], function, reading):
        return alone
    frames = []
    for each in functions:
        found = reading.functions.find(each.shared)
        if found is None:
            return alone
        if found.name or not found.is_built_in:
            frames.append(_frame(found, each.line))
    inlined = [frame._replace(is_inlined=True) for frame in frames[:-1]]
    return V8Code((*inlined, frames[-1]), (), reading.code.optimisation(code))


def _optimised(code: Code, pc: int, reading: V8Reading) -> list[ActiveFunction] | None:
    """The functions at a return address, or of a leaf at the instruction before it."""
    reader = reading.code
    if code.kind not in (reader.layout.kind_maglev, reader.layout.kind_turbofan):
        return None
    return reader.optimised(code, pc) or reader.interrupted(code, pc)


def _is_same(active: ActiveFunction, function: Function, reading: V8Reading) -> bool:
    found = reading.functions.find(active.shared)
    return found is not None and found[2:4] == function[2:4]


def _frame(function: Function, line: int) -> JavaScriptFrame:
    return JavaScriptFrame(function.name or ANONYMOUS, function.file, line, is_function=True)
