"""The frames of one thread, named: kernel, native, Python and Java."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.observe.instruments.thread_registers import ThreadNow
from purebpf.observe.runtimes.cpython.python_process import PythonProcess
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.observe.unwind.copied_stack import CopiedStack
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.runtimes.cpython.frames import PythonFrame, PythonStack
from purebpf.runtimes.cpython.merge import Fit, merge
from purebpf.runtimes.hotspot.java_frame import JavaFrame
from purebpf.symbols.frame import Frame, Unknown
from purebpf.symbols.start_functions import count_starts
from purebpf.syscall import host_clock, proc
from purebpf.tools.dump.model import DumpedFrame
from purebpf.tuples import NamedTuple
from purebpf.unwind.generated import GeneratedCode

if TYPE_CHECKING:
    from purebpf.files.held_files import HeldFiles
    from purebpf.observe.runtimes.hotspot.java_process import JavaProcess, JavaReading

__all__ = ["FrameNames", "JavaStack", "kernel_frames"]

Answer = Frame | Unknown

_MAX_FRAMES = 4096
_LAUNCHER = "/libjli.so"
_KERNEL = re.compile(r"\[<[^>]*>\] ([^+\s]+)\+\S+(?: \[([^\]]+)\])?")


class JavaStack(NamedTuple):
    """The frames of a thread of a JVM, innermost first, and the reasons why they are not all.

    Attributes:
        frames: addresses of native frames, and Java frames.
        problems: empty for a whole stack.
    """

    frames: list[int | JavaFrame]
    problems: list[str]


class FrameNames(Closing):
    """Names the frames of a process.

    Args:
        pid: the process.
        python: its interpreter; None: it has none.
        java: its JVM; None: it has none.
        native: whether to keep the frames of the interpreter itself, or of the JVM.
    """

    def __init__(
        self, pid: int, python: PythonProcess | None, java: JavaProcess | None, *, native: bool
    ) -> None:
        self._pid = pid
        self._python = python
        self._java = java
        self._native = native
        self._symbolizer = Symbolizer()
        with ExitStack() as undo:
            self._stacks = undo.enter_context(ProcessStacks(max_frames=_MAX_FRAMES))
            self._closing = undo.pop_all()

    def batch(self) -> HeldFiles:
        """Return a `with` block for the frames of many threads, which asks the same files."""
        return self._symbolizer.batch()

    def java_stack(self, now: ThreadNow, stack: bytes, reading: JavaReading) -> JavaStack:
        """Walk through the stack of a thread that sleeps; its Java frames have their names.

        Args:
            now: its registers.
            stack: the bytes at its stack pointer.
            reading: the JVM at this time.
        """
        walk = reading.frames()
        problems: list[str] = []
        frames: list[int | JavaFrame] = []
        for at, address in enumerate(self._unwind(now, stack, problems, walk)):
            frames += walk.found.get(at, [address])
        if walk.problem:
            problems = [f"java_cut: {walk.problem}"]
        return JavaStack(frames, problems)

    def java_frames(self, java: JavaStack, comm: str) -> list[DumpedFrame]:
        """Return the frames to print: those of the JVM itself are left out, and so are stubs."""
        has_java = any(isinstance(frame, JavaFrame) for frame in java.frames)
        shown_frames = [
            frame for frame in java.frames if self._native or self._is_own(frame, has_java)
        ]
        addresses = [frame for frame in shown_frames if not isinstance(frame, JavaFrame)]
        names = self._symbolizer.user_stack(self._pid, addresses, comm)
        by_address = dict(zip(addresses, names, strict=True))
        answers: list[Answer | JavaFrame] = [
            frame if isinstance(frame, JavaFrame) else by_address[frame] for frame in shown_frames
        ]
        if not self._native:
            answers = answers[: len(answers) - count_starts(answers)]
            while has_java and answers and _is_launcher(answers[-1]):
                answers.pop()
        return [self._answer(answer) for answer in answers]

    def frames(
        self, now: ThreadNow, stack: bytes, python: PythonStack | None
    ) -> tuple[list[DumpedFrame], list[str]]:
        """Return the frames of a thread in user space, innermost first, and their problems.

        Args:
            now: its registers.
            stack: the bytes at its stack pointer; b"" where its native frames are not known.
            python: its Python frames; None: it has none.
        """
        python_frames = python.frames if python else ()
        problems = [python.problem] if python and python.problem else []
        if not stack:
            return [_of_python(frame) for frame in python_frames], problems
        addresses = self._unwind(now, stack, problems)
        is_loop = [self._is_loop(address, at) for at, address in enumerate(addresses)]
        is_whole = not problems
        merged = merge(addresses, is_loop, python_frames, is_whole=is_whole)
        if merged.fit is not Fit.EXACT:
            problems.append("python_merge: the native and the Python frames do not fit together")
        return list(self._named(merged.frames, self._names(addresses, now.comm))), problems

    def _names(self, addresses: list[int], comm: str) -> dict[int, Answer]:
        """Return the names of the frames to print: an interpreter has many, which take long to
        read.
        """
        wanted = [a for a in addresses if self._native or not self._is_interpreter(a)]
        return dict(zip(wanted, self._symbolizer.user_stack(self._pid, wanted, comm), strict=True))

    def _unwind(
        self,
        now: ThreadNow,
        stack: bytes,
        problems: list[str],
        generated: GeneratedCode | None = None,
    ) -> list[int]:
        assert now.registers is not None
        copy = CopiedStack(
            host_clock.monotonic_ns(),
            0,
            self._pid,
            now.tid,
            now.comm,
            False,
            now.pc,
            now.registers,
            stack,
        )
        trace = self._stacks.unwind(copy, generated)
        if not trace.reason.is_whole:
            problems.append(f"native frames are cut: {trace.reason.name.lower()}")
        return trace.frames

    def _is_loop(self, address: int, at: int) -> bool:
        """Return True if a frame, the `at`-th, is a call of the evaluation loop."""
        where = address - (at > 0)
        return self._python is not None and any(
            part.start <= where < part.end for part in self._python.loop
        )

    def _named(
        self, frames: list[int | PythonFrame], names: dict[int, Answer]
    ) -> Iterator[DumpedFrame]:
        """Yield the frames to print, with their names."""
        shown_frames = [
            frame if isinstance(frame, PythonFrame) else names[frame]
            for frame in frames
            if isinstance(frame, PythonFrame) or frame in names
        ]
        starts = 0 if self._native else count_starts(shown_frames)
        for frame in shown_frames[: len(shown_frames) - starts]:
            yield self._answer(frame)

    @staticmethod
    def _answer(frame: Answer | PythonFrame | JavaFrame) -> DumpedFrame:
        if isinstance(frame, PythonFrame):
            return _of_python(frame)
        if isinstance(frame, JavaFrame):
            kind = "java" if frame.is_method else "user"
            return DumpedFrame(kind, frame.name, frame.file, frame.line)
        name = frame.name if isinstance(frame, Frame) else f"{frame.address:#x}"
        return DumpedFrame("user", name, frame.module)

    def _is_own(self, frame: int | JavaFrame, has_java: bool) -> bool:
        """Return True if a frame is not the JVM's: a Java method, or code of another file.

        A thread without Java frames is one of the JVM itself, and has all its frames.
        """
        if isinstance(frame, JavaFrame):
            return frame.is_method
        return not has_java or not self._is_jvm(frame)

    def _is_jvm(self, address: int) -> bool:
        space = self._stacks.space(self._pid)
        if self._java is None or space is None:
            return False
        own, mapping = space.find(self._java.library), space.find(address - 1)
        return mapping is not None and own is not None and mapping.file == own.file

    def _is_interpreter(self, address: int) -> bool:
        """Return True if code is in the file of the interpreter."""
        space = self._stacks.space(self._pid)
        if self._python is None or not self._python.loop or space is None:
            return False
        own = space.find(self._python.loop[0].start)
        mapping = space.find(address - 1)
        return mapping is not None and own is not None and mapping.file == own.file

    def close(self) -> None:
        """Close the files; again is harmless."""
        self._closing.close()


def _is_launcher(frame: Answer | JavaFrame) -> bool:
    """Return True for a frame of the program `java`, which starts main()."""
    return not isinstance(frame, JavaFrame) and frame.module.endswith(_LAUNCHER)


def kernel_frames(pid: int, tid: int) -> list[DumpedFrame]:
    """Return the frames of a thread in the kernel; none if they cannot be read."""
    try:
        text = proc.kernel_stack(pid, tid) or ""
    except KernelError:
        return []
    return [
        DumpedFrame("kernel", match[1], match[2] or "kernel") for match in _KERNEL.finditer(text)
    ]


def _of_python(frame: PythonFrame) -> DumpedFrame:
    return DumpedFrame("python", frame.name, frame.file, frame.line)
