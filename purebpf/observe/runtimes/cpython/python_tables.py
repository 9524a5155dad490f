"""`PythonTables`: the settings and the records of bpf_src/include/python_frames.h."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.late_pattern import compile_later
from purebpf.loader.rings.record_types import RecordMap
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.loader.types.task_offsets import thread_pointer_offset
from purebpf.observe.runtimes.cpython.code_names import CodeNames
from purebpf.observe.runtimes.cpython.deferred_codes import read_proven
from purebpf.observe.runtimes.cpython.interpreter_table import InterpreterTable
from purebpf.observe.runtimes.script_process import ScriptProcess
from purebpf.results.model.loss import Cause, Loss
from purebpf.results.model.stack_end import is_root, merge_mark
from purebpf.runtimes.cpython.threads import Gil
from purebpf.runtimes.interpreted import InterpretedFrame
from purebpf.runtimes.merge import Fit, Home, Merged, merge
from purebpf.symbols.budget import PROCESS, RUN, USER, Allowance, Budget, OverBudgetError
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.python_words import (
    DEEP_PYTHON_FRAMES,
    PYTHON_FRAMES,
    AwaitingTask,
    Mark,
    is_cut,
    split_tasks,
)
from purebpf.symbols.runtimes import script_engine
from purebpf.symbols.start_functions import count_starts
from purebpf.syscall import proc
from purebpf.syscall.process_memory import STUCK
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.runtimes.cpython.task_table import TaskTable

__all__ = ["PythonTables", "SleepingPython", "why_unnamed"]

_MOST_FRAMES = 96  # PYTHON_FRAMES of python_layout.h
_ALLOWANCES = {
    PROCESS: Allowance(1 << 40, 3.0),
    USER: Allowance(1 << 40, 20.0),
    RUN: Allowance(1 << 40, 60.0),
}
"""What looking for interpreters may cost in ten minutes. One takes milliseconds of CPU time, or a
tenth of a second if its file was not seen before; what a process holds is its user's to decide."""

_KEPT_FRAMES = 2048
_ASYNCIO = b"asyncio"
_SWITCHES = "/_greenlet."
"""In the path of a library that copies pieces of stacks over one another."""
_CHECKS = "_Py_CheckFunctionResult"
_ROOTS = 3
"""Outermost frames of a stack, of which one may have the name of a function that nothing calls."""
_GENERATED = frozenset(
    {
        Reason.ANONYMOUS,
        Reason.NOT_IN_PERF_MAP,
        Reason.NOT_IN_JITDUMP,
        Reason.UNTRUSTED_PERF_MAP,
        Reason.STALE_PERF_MAP,
    }
)
"""Of code that is in no file."""
_TELLING = compile_later(
    r"rb_(mutex_|nogvl$|thread_(io_blocking_region|call_without_gvl|wait_fd)|io_wait$"
    r"|wait_for_single_fd|native_cond_|gc_)|(zend_)?gc_(collect|run|marks|sweep)"
)
"""Functions of Ruby and PHP: waits for a lock and for a file, the collection of garbage."""
_FITS = {Fit.SWITCHED: "base", Fit.OUTSIDE: "outside", Fit.UNKNOWN: "unknown"}
"""In the path of what runs tasks: the process has imported it."""

_MARKS: dict[int, str] = {
    Mark.TASK: "[task]",
    Mark.SEVERAL: "[several awaiters]",
    Mark.MORE: "[more awaiters]",
    Mark.UNKNOWN: "[unknown awaiter]",
}

Answer = Frame | Unknown


class SleepingPython(NamedTuple):
    """Threads of a process that sleep: their words by thread pointer, and the locks they share."""

    words: dict[int, tuple[int, ...]]
    gils: list[Gil]


class PythonTables(Closing):
    """Publishes interpreters, reads names, and merges Python frames with native ones.

    Args:
        maps: the object's maps, by name; they must stay open.
        variables: its globals: gets an offset in the kernel's tasks.
        lines: whether lines are wanted.
        native: whether to keep the frames of the interpreter itself.
        tasks: whether the tasks of asyncio are wanted that await the one that runs.
        budget: pays for looking into processes.

    Attributes:
        interpreters: the published interpreters: give it processes, and their records.
        names: the names of the frames.
        merges, inexact, cut: merged stacks, the ones among them that did not fit together, and the
            ones whose Python frames could not be read.
    """

    def __init__(
        self,
        maps: Mapping[str, RecordMap],
        variables: MutableMapping[str, Any],
        *,
        lines: bool = False,
        native: bool = False,
        tasks: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self._native = native
        self._budget = budget or Budget(_ALLOWANCES)
        self._tasks = _task_table(maps["python_tasks"]) if tasks else None
        self.interpreters = InterpreterTable(maps["pythons"], self._budget, self._tasks)
        self.names = CodeNames(lines=lines)
        self.merges = self.inexact = self.cut = 0
        try:
            offset = thread_pointer_offset()
        except NotSupportedError:
            offset = 0
        variables["thread_pointer_at"] = offset
        self._ring = RingBuffer(maps["python_names"], bytes)

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when `drain()` is due: names have come."""
        return (self._ring.fileno(),)

    def drain(self) -> None:
        """Take in the names that came, and look again at processes that had just started."""
        self.interpreters.look_again()
        ended = self.interpreters.take_ended()
        for raw in self._ring.drain():
            self.names.add(raw, self.interpreters.by_generation)
            if self._tasks is not None and _ASYNCIO in raw:
                self.interpreters.look_for_tasks(int.from_bytes(raw[:8], "little"))
        self._read_deferred()
        for tgid, generation in ended:
            self.interpreters.forget(tgid, generation)

    def _read_deferred(self) -> None:
        """Read the code objects that BPF could not: a process may have any number of them."""
        for generation, waiting in self.names.take_deferred().items():
            python_state = self.interpreters.by_generation.get(generation)
            is_over = python_state is None
            for number, (deferred, frames) in waiting.items():
                code = None
                if python_state is not None and not is_over:
                    tgid = python_state.tgid
                    try:
                        with self._budget.on_behalf(run="", user=proc.owner(tgid), process=tgid):
                            code = read_proven(python_state, deferred)
                    except OverBudgetError as error:
                        self.interpreters.skipped[tgid] = str(error)
                        is_over = True
                version = python_state.version if python_state else (0, 0)
                self.names.take(number, code, version, frames)

    def read_sleeping(self, tgid: int, pointers: Collection[int], first: int = 0) -> SleepingPython:
        """Return the words of sleeping threads, by their thread pointers; only for published
        processes.

        They are read from outside: the caller checks that the threads did not run in between.

        Args:
            tgid: the process.
            pointers: of the threads.
            first: of the process's first thread; 0: it is not one of them.
        """
        python_state = self.interpreters.of(tgid)
        words: dict[int, tuple[int, ...]] = {}
        gils: list[Gil] = []
        if python_state is None:
            return SleepingPython(words, gils)
        try:
            with self._budget.on_behalf(run="", user=proc.owner(tgid), process=tgid):
                if isinstance(python_state.process, ScriptProcess):
                    process, version = python_state.process, python_state.version
                    for at in pointers:
                        stack = process.frames(at, is_first=at == first, most=_MOST_FRAMES)
                        if stack is not None:
                            lined = self.names.lines
                            frames = stack.frames if lined else map(_without_line, stack.frames)
                            words[at] = tuple(self.names.word(each, version) for each in frames)
                    return SleepingPython(words, gils)
                assert python_state.slot is not None
                reading = python_state.process.look(lines=self.names.lines)
                if python_state.process.is_stuck:
                    self.interpreters.skipped[tgid] = STUCK
                for interpreter in reading.interpreters:
                    if interpreter.gil is not None:
                        gils.append(interpreter.gil)
                    for thread in interpreter.threads:
                        pointer = thread.pthread + python_state.slot.distance
                        if pointer in pointers and pointer not in words:
                            stack = python_state.process.frames(
                                reading, thread.address, _MOST_FRAMES
                            )
                            words[pointer] = tuple(
                                self.names.word(frame, python_state.version)
                                for frame in stack.frames
                            )
        except OverBudgetError as error:
            self.interpreters.skipped[tgid] = str(error)
        return SleepingPython(words, gils)

    def merge(
        self, tgid: int, addresses: Sequence[int], native: Sequence[Answer]
    ) -> Sequence[Answer]:
        """A user stack with its Python frames, innermost first.

        Args:
            tgid: its process.
            addresses: native ones, innermost first, then words of python_layout.h.
            native: the names of the former.
        """
        python_state = self.interpreters.of(tgid)
        frame, is_real = self.names.frame, self.names.is_real
        words, of_task, awaiting = split_tasks(addresses[len(native) :])
        self.cut += any(task.mark == Mark.UNKNOWN for task in awaiting)
        if python_state is None:
            named = [_frame(frame(word)) for word in words]
            return [*native, *named[:of_task], *self._awaiting(awaiting), *named[of_task:]]
        is_loop = _in_loop(python_state.loop, addresses[: len(native)])
        if words and is_cut(words[-1]):
            if len(words) == 1 and not any(is_loop):  # a thread that runs no Python
                words = ()
            else:
                self.cut += 1
        is_script = isinstance(python_state.process, ScriptProcess)
        own = {python_state.path} if any(is_loop) else {python_state.path, python_state.program}
        real = [frame(word) for word in words if is_real(word)]
        merged = _merge(native, is_loop, real, own, is_script=is_script)
        generated = (
            next(map(native.index, filter(_is_generated, native)), None) if is_script else None
        )
        if generated is not None and real:
            # the JIT's code has no frame of its own, and native callers are not known behind it
            left_native, left_loop = native[:generated], is_loop[:generated]
            merged = _merge(left_native, left_loop, real, own, is_script=is_script)
            is_placed = merged.fit in (Fit.EXACT, Fit.OUTSIDE)
            merged = merged._replace(fit=Fit.EXACT if is_placed else merged.fit)
        self.merges += 1
        self.inexact += merged.fit is Fit.UNKNOWN
        left = sum(map(is_real, words[:of_task]))
        answers: list[Answer] = []
        kind = "user" if is_script else "python"
        hidden = own if merged.is_compiled else {python_state.path}
        if is_script and script_engine(python_state.program):  # a program that only starts it
            hidden.add(python_state.program)
        shown_frames = merged.frames
        if not self._native:
            shown_frames = shown_frames[: len(shown_frames) - count_starts(shown_frames)]
        is_inside = is_script
        for entry in shown_frames:
            if isinstance(entry, InterpretedFrame):
                is_inside = False
                answers.append(_frame(entry, kind))
                left -= 1
                if not left:
                    answers += self._awaiting(awaiting)
            elif self._native or entry.module not in hidden or (is_inside and _tells(entry)):
                answers.append(entry)
        is_complete = len(words) not in (PYTHON_FRAMES, DEEP_PYTHON_FRAMES)
        is_complete = is_complete and not (words and is_cut(words[-1]))
        if (words and merged.fit is Fit.UNKNOWN) or (merged.fit is not Fit.EXACT and is_complete):
            answers.append(merge_mark(_FITS[merged.fit]))
        return answers

    def _awaiting(self, tasks: Sequence[AwaitingTask]) -> Iterator[Answer]:
        """The frames of tasks that await one another, innermost first."""
        for mark, words in tasks:
            yield Frame(_MARKS[mark], 0, "", Address(0), "python")
            for word in words:
                yield _frame(self.names.frame(word))

    def hints(self, pids: Collection[int] | None) -> list[str]:
        """Return the processes whose stacks lack Python frames, and the reasons; None: all of
        them.
        """
        lines = self.interpreters.hints(pids)
        if self._tasks is not None:
            lines += self._tasks.hints(pids)
        return lines

    def with_python(self, loss: Loss, stats: Mapping[str, object]) -> Loss:
        """Return the losses, with Python frames' added, by `struct python_stats`.

        A merge that is not exact is a note, as both lists are complete.
        """
        unnamed, lost = (int(str(stats[name])) for name in ("python_unnamed", "python_names_lost"))
        unnamed += self.names.unread
        causes = (
            Cause(
                "python_unnamed",
                unnamed,
                f"{unnamed} Python frames have no name: {why_unnamed(lost, unnamed - lost)}",
            ),
            Cause(
                "python_cut",
                self.cut,
                f"{self.cut} user stacks lack Python frames that could not be read",
            ),
            Cause(
                "python_merge",
                self.inexact,
                f"{self.inexact} user stacks of {self.merges} do not fit with their Python frames",
                is_note=True,
            ),
        )
        return loss._replace(causes=(*loss.causes, *causes))

    def counts(self) -> dict[str, int]:
        """Return the results of merging: stacks, and the ones that did not fit together.

        And the frames that have no name as user space could not read their code objects either.
        """
        return {
            "python_merged": self.merges,
            "python_inexact": self.inexact,
            "python_unread": self.names.unread,
        }

    def close(self) -> None:
        """Close the ring and the memories; again is harmless."""
        self._ring.close()
        self.interpreters.close()


def _task_table(tasks: RecordMap) -> TaskTable:
    from purebpf.observe.runtimes.cpython.task_table import TaskTable  # which few runs ask for

    return TaskTable(tasks)


def _in_loop(loop: Sequence[CodeRange], addresses: Sequence[int]) -> list[bool]:
    """Return the addresses of a stack that are in the evaluation loop; all but the first follow
    a call.
    """
    is_in_loop = [False] * len(addresses)
    for start, end in loop:
        for at, address in enumerate(addresses):
            if start < address <= end:
                is_in_loop[at] = True
    if addresses:
        is_in_loop[0] = any(start <= addresses[0] < end for start, end in loop)
    return is_in_loop


def _merge(
    native: Sequence[Answer],
    is_loop: Sequence[bool],
    frames: Sequence[InterpretedFrame],
    own: Container[str],
    *,
    is_script: bool,
) -> Merged[Answer]:
    return merge(
        native,
        is_loop,
        frames,
        is_switch=[_SWITCHES in entry.module for entry in native],
        is_whole=any(is_root(entry) for entry in native[-_ROOTS:]),
        homes=_homes(native, own),
        may_precede=is_script,
        leaving=0 if is_script else _leaving(native, is_loop),
    )


def _leaving(native: Sequence[Answer], is_loop: Sequence[bool]) -> int:
    """Return how many frames belong to the check of a result that ends a call of the loop.

    CPython 3.8 to 3.10 unlink the frame of the function before this check.
    """
    innermost = is_loop.index(True) if True in is_loop else 0
    if not innermost:
        return 0
    called = native[innermost - 1]
    return innermost if isinstance(called, Frame) and called.name.startswith(_CHECKS) else 0


def _tells(entry: Answer) -> bool:
    """Return True for a function of an interpreter that says why a method is slow, or waits."""
    return isinstance(entry, Frame) and bool(_TELLING.match(entry.name))


def _is_generated(entry: Answer) -> bool:
    if isinstance(entry, Unknown):
        return entry.reason in _GENERATED
    return entry.module == "[jit]"


def _homes(native: Sequence[Answer], own: Container[str]) -> list[Home]:
    """Return what kind of code the frames of a stack run; `own`: the files of Python code."""
    homes = [
        (Home.INTERPRETER if _is_api(entry) else Home.COMPILED)
        if entry.module in own
        else Home.NONE
        for entry in native
    ]
    for at in range(len(native) - count_starts(native), len(native)):
        homes[at] = Home.NONE
    return homes


def _is_api(entry: Answer) -> bool:
    return isinstance(entry, Frame) and entry.name.startswith(("Py", "_Py"))


@lru_cache(maxsize=_KEPT_FRAMES)
def _frame(frame: InterpretedFrame, kind: str = "python") -> Answer:
    if not frame.name:
        if is_cut(frame.code):
            return Unknown(Reason.PYTHON_CUT, "", Address(0), "python")
        return Unknown(Reason.PYTHON_UNNAMED, frame.file, Address(0), "python")
    source = (frame.file, frame.line) if frame.line else ("", 0)
    return Frame(frame.name, 0, frame.file, Address(0), kind, file=source[0], line=source[1])


def _without_line(frame: InterpretedFrame) -> InterpretedFrame:
    return frame._replace(line=0)


def why_unnamed(lost: int, unread: int) -> str:
    """Why frames have no name, in words; `lost` and `unread` of them."""
    whys = []
    if lost:
        whys.append(f"the names of {lost} found no room in a ring that was not read in time")
    if unread:
        whys.append(f"{unread} could not be read")
    return ", and ".join(whys)
