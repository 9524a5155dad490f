"""The frames of one thread, named: kernel, native and Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.observe.instruments.thread_registers import ThreadNow
from purebpf.observe.runtimes.cpython.python_process import PythonProcess
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.observe.unwind.copy_buffer import CopiedStack
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.runtimes.cpython.frames import PythonFrame, PythonStack
from purebpf.runtimes.cpython.merge import Fit, merge
from purebpf.symbols.frame import Frame, Unknown
from purebpf.symbols.start_functions import count_starts
from purebpf.syscall import host_clock, proc
from purebpf.tools.dump.model import DumpedFrame

__all__ = ["FrameNames", "kernel_frames"]

Answer = Frame | Unknown

_MAX_FRAMES = 4096
_KERNEL = re.compile(r"\[<[^>]*>\] ([^+\s]+)\+\S+(?: \[([^\]]+)\])?")


class FrameNames(Closing):
    """Names the frames of a process.

    Args:
        pid: the process.
        python: its interpreter; None: it has none.
        native: whether to keep the frames of the interpreter itself.
    """

    def __init__(self, pid: int, python: PythonProcess | None, *, native: bool) -> None:
        self._pid = pid
        self._python = python
        self._native = native
        self._symbolizer = Symbolizer()
        with ExitStack() as undo:
            self._stacks = undo.enter_context(ProcessStacks(max_frames=_MAX_FRAMES))
            self._closing = undo.pop_all()

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

    def _unwind(self, now: ThreadNow, stack: bytes, problems: list[str]) -> list[int]:
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
        trace = self._stacks.unwind(copy)
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
        shown = [
            frame if isinstance(frame, PythonFrame) else names[frame]
            for frame in frames
            if isinstance(frame, PythonFrame) or frame in names
        ]
        starts = 0 if self._native else count_starts(shown)
        for frame in shown[: len(shown) - starts]:
            if isinstance(frame, PythonFrame):
                yield _of_python(frame)
            else:
                name = frame.name if isinstance(frame, Frame) else f"{frame.address:#x}"
                yield DumpedFrame("user", name, frame.module)

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
