"""The Java frames of a thread, met by an unwinder between its native frames.

HotSpot keeps rbp as a register that callees save, so it is right in each frame if each step
restores it. A compiled frame has a fixed size; a frame of the interpreter is a chain by rbp, and
holds its method and the address of its bytecode, which must lie in the method's code
(src/hotspot/cpu/x86/frame_x86.hpp).
"""

from __future__ import annotations

from purebpf.runtimes.hotspot.code_cache import Blob, BlobKind, CodeCache
from purebpf.runtimes.hotspot.inlined import Inlined, InlinedMethods
from purebpf.runtimes.hotspot.java_frame import JavaFrame
from purebpf.runtimes.hotspot.methods import Methods
from purebpf.runtimes.memory import Memory
from purebpf.unwind.generated import Caller, FrameState
from purebpf.unwind.machine import X86_64

__all__ = ["NATIVE_METHOD", "UNKNOWN_METHOD", "VIRTUAL", "JavaFrame", "JavaFrames"]

NATIVE_METHOD = "Native Method"
UNKNOWN_METHOD = "[unknown Java method]"
_SENDER_SP, _METHOD, _BYTECODE = -1, -3, -8
"""Words of an interpreter's frame, from its frame pointer."""
_WORD = 8
_LARGEST_FRAME = 1 << 18
VIRTUAL = "[virtual thread: callers in the heap]"


class _CutError(Exception):
    """A frame that cannot be left: the message says why."""


class JavaFrames:
    """Leaves the frames of HotSpot's code in one stack, and names them at once.

    Args:
        cache: the code of the JVM.
        methods, inlined: its methods.
        now: the process's memory as it is now: a compilation must be there before and after.

    Attributes:
        found: the frames by their number in the trace, innermost first where several are one.
        problem: the reason why a frame could not be left; "".
    """

    def __init__(
        self, cache: CodeCache, methods: Methods, inlined: InlinedMethods, now: Memory
    ) -> None:
        self._cache = cache
        self._methods = methods
        self._inlined = inlined
        self._now = now
        self.found: dict[int, list[JavaFrame]] = {}
        self.problem = ""

    def has(self, address: int) -> bool:
        """Return True if an address is in the JVM's code."""
        return self._cache.has(address)

    @property
    def problems(self) -> list[str]:
        """The reason why a frame could not be left, in a list; empty for a whole stack."""
        return [f"java_cut: {self.problem}"] if self.problem else []

    def leave(self, frame: FrameState) -> Caller | None:
        """See `purebpf.unwind.generated.GeneratedCode`."""
        try:
            return self._leave(frame)
        except _CutError as error:
            self.problem = str(error)
            return None

    def _leave(self, frame: FrameState) -> Caller:
        blob = self._cache.find(frame.pc - (not frame.is_exact))
        if blob is None:
            raise _CutError("an address without code")
        if frame.is_exact:
            raise _CutError(f"interrupted in {blob.name}")
        if blob.kind is BlobKind.INTERPRETER:
            return self._leave_interpreter(frame)
        if blob.kind.is_method:
            return self._leave_method(frame, blob)
        return self._leave_stub(frame, blob)

    def _leave_interpreter(self, frame: FrameState) -> Caller:
        fp = self._frame_pointer(frame)
        if fp is None:
            raise _CutError("an interpreter's frame elsewhere")
        method = frame.word(fp + _WORD * _METHOD)
        index = self._methods.bytecode_index(method, frame.word(fp + _WORD * _BYTECODE))
        if index is None:
            raise _CutError("an interpreter's frame without a bytecode of its method")
        self.found[frame.number] = [self._name(Inlined(method, index))]
        return Caller(frame.word(fp + _WORD), frame.word(fp + _WORD * _SENDER_SP), frame.word(fp))

    def _leave_method(self, frame: FrameState, blob: Blob) -> Caller:
        sp = frame.registers[X86_64.sp] or 0
        pc = frame.pc
        if blob.frame_size < 2 * _WORD:
            raise _CutError("a method without a frame")
        if pc in blob.deopt_handlers:
            true_pc = frame.word(sp + blob.orig_pc)
            if not blob.begin <= true_pc < blob.end:
                raise _CutError("a deoptimised frame without its return address")
            pc = true_pc
        if not self._inlined.has_place(blob, pc):
            raise _CutError("a return address that its code does not have")
        self.found[frame.number] = self._name_compiled(blob, pc)
        return self._by_size(frame, blob, sp)

    def _leave_stub(self, frame: FrameState, blob: Blob) -> Caller:
        sp = frame.registers[X86_64.sp] or 0
        name = VIRTUAL if blob.kind is BlobKind.CONTINUATION else blob.name
        is_shown = blob.kind is BlobKind.CONTINUATION
        self.found[frame.number] = [JavaFrame(name, "", 0, is_shown)]
        if blob.kind is BlobKind.FRAMELESS:
            return Caller(frame.word(sp), sp + _WORD, frame.registers[X86_64.fp] or 0)
        if blob.frame_size >= 2 * _WORD:
            return self._by_size(frame, blob, sp)
        fp = self._frame_pointer(frame)
        if fp is None:
            raise _CutError(f"a frame of {blob.name} elsewhere")
        return Caller(frame.word(fp + _WORD), fp + 2 * _WORD, frame.word(fp))

    @staticmethod
    def _by_size(frame: FrameState, blob: Blob, sp: int) -> Caller:
        end = sp + blob.frame_size
        return Caller(frame.word(end - _WORD), end, frame.word(end - 2 * _WORD))

    @staticmethod
    def _frame_pointer(frame: FrameState) -> int | None:
        """The frame pointer, if it points into the stack above the stack pointer."""
        sp, fp = frame.registers[X86_64.sp], frame.registers[X86_64.fp]
        if sp is None or fp is None or not sp <= fp < sp + _LARGEST_FRAME or fp % _WORD:
            return None
        return fp

    def _name_compiled(self, blob: Blob, pc: int) -> list[JavaFrame]:
        """Name the methods of a compilation, which must be the same one before and after."""
        inlined = self._inlined.find(blob, pc)
        names = [self._name(each) for each in inlined]
        names[:-1] = [name._replace(is_inlined=True) for name in names[:-1]]
        if self._cache.identity(self._now, blob) != (blob.compile_id, blob.method):
            self.problem = "compiled code was freed while it was read"
            return [JavaFrame(UNKNOWN_METHOD, "", 0, is_method=True)]
        return names

    def _name(self, place: Inlined) -> JavaFrame:
        method = self._methods.find(place.method)
        if method is None:
            return JavaFrame(UNKNOWN_METHOD, "", 0, is_method=True)
        name = f"{method.class_name}.{method.name}"
        if not method.code_size:
            return JavaFrame(name, NATIVE_METHOD, 0, is_method=True)
        return JavaFrame(name, method.file, method.line(max(place.bytecode, 0)), is_method=True)
