"""The frames of one thread, named: kernel, native, Python, PHP, Ruby, Java and JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.observe.instruments.thread_registers import ThreadNow
from purebpf.observe.runtimes.cpython.python_process import PythonProcess
from purebpf.observe.runtimes.cpython.running import program_path
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.observe.unwind.copied_stack import CopiedStack
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.runtimes.hotspot.java_frame import JavaFrame
from purebpf.runtimes.interpreted import InterpretedFrame, InterpretedStack
from purebpf.runtimes.merge import Fit, Home, merge
from purebpf.runtimes.v8.javascript_frame import JavaScriptFrame
from purebpf.symbols.frame import Frame, Unknown
from purebpf.symbols.proc_maps import parse_maps
from purebpf.symbols.runtimes import script_engine
from purebpf.symbols.start_functions import count_starts
from purebpf.syscall import host_clock, proc
from purebpf.tools.dump.model import DumpedFrame
from purebpf.tuples import NamedTuple
from purebpf.unwind.generated import GeneratedCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from purebpf.files.held_files import HeldFiles
    from purebpf.observe.runtimes.script_process import ScriptProcess

__all__ = ["FrameNames", "GeneratedStack", "Walk", "kernel_frames"]

Answer = Frame | Unknown
NamedFrame = JavaFrame | JavaScriptFrame

_MAX_FRAMES = 4096
_LAUNCHER = "/libjli.so"
_KERNEL = re.compile(r"\[<[^>]*>\] ([^+\s]+)\+\S+(?: \[([^\]]+)\])?")


class Walk(GeneratedCode, Protocol):
    """A walk through the frames of code that a runtime generated, which names them."""

    @property
    def found(self) -> Mapping[int, Sequence[NamedFrame]]:
        """Names by the index of the frame; inlined functions share one, innermost first."""

    @property
    def problems(self) -> list[str]:
        """Reasons why the walk ended early or a frame has no name; empty for a whole stack."""


class GeneratedStack(NamedTuple):
    """The frames of a thread of a JVM or of V8, innermost first, and why they are not all.

    Attributes:
        frames: addresses of native frames, and Java or JavaScript frames.
        problems: empty for a whole stack.
    """

    frames: list[int | NamedFrame]
    problems: list[str]


class FrameNames(Closing):
    """Names the frames of a process.

    Args:
        pid: the process.
        python: its interpreter of Python, PHP or Ruby; None: it has none.
        library: an address in the file of its JVM, or of V8; 0: it has neither.
        native: whether to keep the frames of the interpreter itself, of the JVM, or of node.
    """

    def __init__(
        self,
        pid: int,
        python: PythonProcess | ScriptProcess | None,
        library: int,
        *,
        native: bool,
    ) -> None:
        self._pid = pid
        self._python = python
        self._language = "Python"
        if python is not None and not isinstance(python, PythonProcess):
            self._language = python.language
        self._library = library
        self._native = native
        self._symbolizer = Symbolizer()
        with ExitStack() as undo:
            self._stacks = undo.enter_context(ProcessStacks(max_frames=_MAX_FRAMES))
            self._closing = undo.pop_all()

    def batch(self) -> HeldFiles:
        """Return a `with` block for the frames of many threads, which asks the same files."""
        return self._symbolizer.batch()

    def generated_stack(self, now: ThreadNow, stack: bytes, walk: Walk) -> GeneratedStack:
        """Walk through the stack of a thread that sleeps; frames of generated code have names.

        Args:
            now: its registers.
            stack: the bytes at its stack pointer.
            walk: leaves such frames, at this time.
        """
        problems: list[str] = []
        frames: list[int | NamedFrame] = []
        for at, address in enumerate(self._unwind(now, stack, problems, walk)):
            frames += walk.found.get(at, [address])
        return GeneratedStack(frames, walk.problems or problems)

    def generated_frames(self, stack: GeneratedStack, comm: str) -> list[DumpedFrame]:
        """Return the frames to print: those of the runtime itself are left out, and so are
        stubs.
        """
        has_named = any(_is_function(frame) for frame in stack.frames)
        shown_frames = [
            frame for frame in stack.frames if self._native or self._is_own(frame, has_named)
        ]
        addresses = [frame for frame in shown_frames if isinstance(frame, int)]
        names = self._symbolizer.user_stack(self._pid, addresses, comm)
        by_address = dict(zip(addresses, names, strict=True))
        answers: list[Answer | NamedFrame] = [
            by_address[frame] if isinstance(frame, int) else frame for frame in shown_frames
        ]
        if not self._native:
            answers = answers[: len(answers) - count_starts(answers)]
            while has_named and answers and _is_launcher(answers[-1]):
                answers.pop()
        return [self._answer(answer) for answer in answers]

    def frames(
        self, now: ThreadNow, stack: bytes, python: InterpretedStack | None
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
            return [self._answer(frame) for frame in python_frames], problems
        addresses = self._unwind(now, stack, problems)
        is_loop = [self._is_loop(address, at) for at, address in enumerate(addresses)]
        is_whole = not problems
        homes = self._homes(addresses, has_loop=any(is_loop))
        merged = merge(addresses, is_loop, python_frames, is_whole=is_whole, homes=homes)
        generated = self._first_generated(addresses)
        if generated is not None and python_frames:
            # native callers of code that an interpreter compiled are not known
            addresses, homes = addresses[:generated], homes[:generated]
            merged = merge(addresses, is_loop[:generated], python_frames)
        elif merged.fit is not Fit.EXACT:
            language = self._language
            problems.append(
                f"{language.lower()}_merge: the native and the {language} frames do not fit "
                "together"
            )
        wanted = addresses
        if merged.is_compiled and not self._native:
            pairs = zip(addresses, homes, strict=True)
            wanted = [address for address, home in pairs if home is Home.NONE]
        return list(self._named(merged.frames, self._names(wanted, now.comm))), problems

    def _homes(self, addresses: list[int], *, has_loop: bool) -> list[Home]:
        """Return what kind of code the frames of a stack run: perhaps Python that was compiled."""
        own = [self._interpreter] if has_loop else [self._interpreter, self._program]
        homes = [
            Home.COMPILED if any(self._is_beside(address, at) for at in own) else Home.NONE
            for address in addresses
        ]
        homes[-1:] = [Home.NONE] * len(homes[-1:])  # a thread's first function
        return homes

    def _first_generated(self, addresses: list[int]) -> int | None:
        """Return the number of the innermost frame of code that PHP or Ruby compiled."""
        space = self._stacks.space(self._pid)
        if isinstance(self._python, PythonProcess) or self._python is None or space is None:
            return None
        for at, address in enumerate(addresses):
            mapping = space.find(address - (at > 0))
            if mapping is not None and mapping.file is None:
                return at
        return None

    @cached_property
    def _program(self) -> int:
        """An address of the program's own code; 0 if that is not known."""
        path = program_path(self._pid)
        mappings = parse_maps(proc.maps(self._pid) or "")
        return next((mapping.start for mapping in mappings if mapping.file.path == path), 0)

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
        self, frames: list[int | InterpretedFrame], names: dict[int, Answer]
    ) -> Iterator[DumpedFrame]:
        """Yield the frames to print, with their names."""
        shown_frames = [
            frame if isinstance(frame, InterpretedFrame) else names[frame]
            for frame in frames
            if isinstance(frame, InterpretedFrame) or frame in names
        ]
        starts = 0 if self._native else count_starts(shown_frames)
        for frame in shown_frames[: len(shown_frames) - starts]:
            yield self._answer(frame)

    def _answer(self, frame: Answer | InterpretedFrame | NamedFrame) -> DumpedFrame:
        if isinstance(frame, InterpretedFrame):
            return DumpedFrame(self._language.lower(), frame.name, frame.file, frame.line)
        if isinstance(frame, JavaFrame | JavaScriptFrame):
            kind = "java" if isinstance(frame, JavaFrame) else "javascript"
            kind = kind if _is_function(frame) else "user"
            return DumpedFrame(kind, frame.name, frame.file, frame.line)
        name = frame.name if isinstance(frame, Frame) else f"{frame.address:#x}"
        return DumpedFrame("user", name, frame.module)

    def _is_own(self, frame: int | NamedFrame, has_named: bool) -> bool:
        """Return True if a frame is not the runtime's: a method, or code of another file.

        A thread without such frames is one of the runtime itself, and has all its frames.
        """
        if isinstance(frame, int):
            return not has_named or not self._is_runtime(frame)
        return _is_function(frame)

    def _is_runtime(self, address: int) -> bool:
        return self._is_beside(address, self._library)

    def _is_interpreter(self, address: int) -> bool:
        """Return True if code is in the file of the interpreter, or in a program that only starts
        that.
        """
        if self._is_beside(address, self._interpreter):
            return True
        return self._is_engine and self._is_beside(address, self._program)

    @cached_property
    def _is_engine(self) -> bool:
        """True if the program runs PHP or Ruby."""
        return bool(script_engine(program_path(self._pid)))

    @property
    def _interpreter(self) -> int:
        """An address of the evaluation loop; 0 if that is not known."""
        return self._python.loop[0].start if self._python and self._python.loop else 0

    def _is_beside(self, address: int, other: int) -> bool:
        """Return True if a call returns to the file that has another address; 0: there is none."""
        space = self._stacks.space(self._pid)
        if not other or space is None:
            return False
        own, mapping = space.find(other), space.find(address - 1)
        return mapping is not None and own is not None and mapping.file == own.file

    def close(self) -> None:
        """Close the files; again is harmless."""
        self._closing.close()


def _is_launcher(frame: Answer | NamedFrame) -> bool:
    """Return True for a frame of the program `java`, which starts main()."""
    return isinstance(frame, Frame | Unknown) and frame.module.endswith(_LAUNCHER)


def _is_function(frame: int | NamedFrame) -> bool:
    """Return True for a method of Java, or a function of JavaScript."""
    if isinstance(frame, JavaFrame):
        return frame.is_method
    return isinstance(frame, JavaScriptFrame) and frame.is_function


def kernel_frames(pid: int, tid: int) -> list[DumpedFrame]:
    """Return the frames of a thread in the kernel; none if they cannot be read."""
    try:
        text = proc.kernel_stack(pid, tid) or ""
    except KernelError:
        return []
    return [
        DumpedFrame("kernel", match[1], match[2] or "kernel") for match in _KERNEL.finditer(text)
    ]
