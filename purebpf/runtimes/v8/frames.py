"""The JavaScript frames of a thread, met by an unwinder between its native frames.

All of V8's frames have a frame pointer. The word below it is a context, and the next one the
function, or it is the kind of a frame of V8's own, shifted by one
(src/execution/frame-constants.h).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from purebpf.runtimes.v8.code import ActiveFunction, CodeReader
from purebpf.runtimes.v8.code_ranges import CodeRanges
from purebpf.runtimes.v8.functions import Functions
from purebpf.runtimes.v8.javascript_frame import (
    ANONYMOUS,
    BUILT_IN,
    UNKNOWN_FUNCTION,
    JavaScriptFrame,
)
from purebpf.unwind.generated import Caller, FrameState
from purebpf.unwind.machine import X86_64

__all__ = ["JavaScriptFrames"]

_WORD = 8
_KIND_MASK = 0xFF
_FUNCTION, _BYTECODE, _BYTECODE_OFFSET = -2, -4, -5
"""Words from the frame pointer."""
_BUILT_IN_TARGET = 3
"""The word above the frame pointer in a frame of a built-in function that is written in C++."""
_LARGEST_FRAME = 1 << 20


class JavaScriptFrames:
    """Leaves the frames of V8's code in one stack, and names them at once.

    Args:
        ranges: where V8's code is.
        functions, code: the process's.
        kinds: names of V8's own frames.

    Attributes:
        found: the frames by their number in the trace, innermost first where several are one.
        problem: the reason why a frame could not be left; "".
        notes: what is not known of frames that were left, with their numbers.
    """

    def __init__(
        self, ranges: CodeRanges, functions: Functions, code: CodeReader, kinds: Mapping[int, str]
    ) -> None:
        self._ranges = ranges
        self._functions = functions
        self._code = code
        self._layout = code.layout
        self._kinds = kinds
        self.found: dict[int, list[JavaScriptFrame]] = {}
        self.problem = ""
        self.notes = Counter[str]()

    def has(self, address: int) -> bool:
        """Return True if an address is in V8's code."""
        return self._ranges.has(address)

    @property
    def problems(self) -> list[str]:
        """Why a frame could not be left, and what is not known of others; [] for a whole stack."""
        cut = [f"javascript_cut: {self.problem}"] if self.problem else []
        return cut + [f"{count} frames: {note}" for note, count in self.notes.items()]

    def leave(self, frame: FrameState) -> Caller | None:
        """See `purebpf.unwind.generated.GeneratedCode`."""
        sp, fp = frame.registers[X86_64.sp], frame.registers[X86_64.fp]
        if sp is None or fp is None:
            self.problem = "a frame of V8 elsewhere"
            return None
        words = self._code.leaf_words(frame.pc) if frame.is_exact else 0
        if words:  # its function has no frame yet, or none any more
            end = sp + words * _WORD
            saved = fp if words == 1 else frame.word(sp)
            return Caller(frame.word(end - _WORD), end, saved)
        if not sp <= fp < sp + _LARGEST_FRAME or fp % _WORD:
            self.problem = "a frame of V8 elsewhere"
            return None
        if frame.is_exact:
            self.notes["interrupted in JavaScript code, where a function may be missing"] += 1
        self.found[frame.number] = self._name(frame, fp)
        saved = frame.word(fp)
        return Caller(frame.word(fp + _WORD), fp + 2 * _WORD, saved, is_guess=frame.is_exact)

    def _name(self, frame: FrameState, fp: int) -> list[JavaScriptFrame]:
        context = frame.word(fp - _WORD)
        if not context & 1:
            return self._own(frame, fp, context >> 1 & _KIND_MASK)
        shared = self._functions.shared_of(frame.word(fp + _WORD * _FUNCTION))
        if not shared:
            return [JavaScriptFrame("[V8]", "", 0, is_function=False)]
        function = self._functions.find(shared)
        if function is not None and function.is_built_in:
            return [self._frame(ActiveFunction(shared, 0))]
        return self._javascript(frame, fp, shared)

    def _own(self, frame: FrameState, fp: int, kind: int) -> list[JavaScriptFrame]:
        """A frame of V8's own: one that calls C++, enters JavaScript, or constructs an object."""
        if kind == self._layout.frame_builtin_exit:
            shared = self._functions.shared_of(frame.word(fp + _WORD * _BUILT_IN_TARGET))
            if shared:
                return [self._frame(ActiveFunction(shared, 0))]
        name = self._kinds.get(kind, f"frame of kind {kind}")
        return [JavaScriptFrame(name, "", 0, is_function=False)]

    def _javascript(self, frame: FrameState, fp: int, shared: int) -> list[JavaScriptFrame]:
        bytecode = frame.word(fp + _WORD * _BYTECODE)
        if not self._ranges.is_generated(frame.pc - (not frame.is_exact)):
            return [self._interpreted(frame, fp, shared, bytecode)]
        code, layout = self._code.find(frame.pc), self._layout
        if code is None:
            self.notes["generated code whose tables are not found, without lines"] += 1
            return [self._frame(ActiveFunction(shared, 0))]
        if code.kind == layout.kind_baseline:
            active = self._code.baseline(code, shared, bytecode, frame.pc - 1)
            return [self._frame(active)]
        if code.kind not in (layout.kind_maglev, layout.kind_turbofan):
            return [self._interpreted(frame, fp, shared, bytecode)]
        find = self._code.interrupted if frame.is_exact else self._code.optimised
        functions = find(code, frame.pc)
        if functions is None or functions[-1].shared != shared:
            self.notes["optimised code whose inlined functions are not known"] += 1
            return [self._frame(ActiveFunction(shared, 0))]
        frames = [self._frame(each) for each in functions]
        return [each._replace(is_inlined=True) for each in frames[:-1]] + frames[-1:]

    def _interpreted(
        self, frame: FrameState, fp: int, shared: int, bytecode: int
    ) -> JavaScriptFrame:
        word = frame.word(fp + _WORD * _BYTECODE_OFFSET)
        offset = self._code.bytecode_offset(bytecode, word)
        line = 0 if offset is None else self._code.bytecode_line(shared, bytecode, offset)
        return self._frame(ActiveFunction(shared, line))

    def _frame(self, active: ActiveFunction) -> JavaScriptFrame:
        function = self._functions.find(active.shared)
        if function is None:
            return JavaScriptFrame(UNKNOWN_FUNCTION, "", 0, is_function=True)
        if function.is_built_in:
            return JavaScriptFrame(
                function.name or "[V8]", BUILT_IN, 0, is_function=bool(function.name)
            )
        name = function.name or ANONYMOUS
        return JavaScriptFrame(name, function.file, active.line, is_function=True)
