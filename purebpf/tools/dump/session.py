"""`dump`: the present stacks of every thread of a process.

No thread stops. purebpf reads registers, stack bytes, the frames of runtimes, then asks the kernel
again: if a thread slept all the time and left no CPU in between, all its data is from one moment.
purebpf reads the other threads again, a few times. Of a running thread only Python frames can be
read: twice in a row the same, or else they carry a problem.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.measure.lock_owners import lock_owners
from purebpf.measure.privileges import RECORD_INSTEAD, needing
from purebpf.measure.targets import PidNamespace, check_processes
from purebpf.observe.instruments.thread_registers import ThreadNow, ThreadRegisters
from purebpf.observe.runtimes.cpython.python_process import (
    KnownFiles,
    PythonProcess,
    PythonReading,
)
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.runtimes.cpython.threads import Gil, Interpreter, ThreadState
from purebpf.runtimes.interpreted import InterpretedStack
from purebpf.syscall import proc
from purebpf.syscall.process_memory import STUCK, open_process_memory, read_arguments
from purebpf.tools.dump.frames import FrameNames, GeneratedStack, kernel_frames
from purebpf.tools.dump.model import (
    MONITOR,
    DumpedFrame,
    DumpedGoroutines,
    DumpedThread,
    ProcessDump,
)
from purebpf.tools.dump.runtimes import Runtimes, find_runtimes
from purebpf.tools.dump.waits import STATES, describe_wait
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.runtimes.hotspot.monitors import WantedMonitor

__all__ = ["dump"]

_ROUNDS = 5
_HIGHEST = 1 << 64
_PAUSE_S = 0.005
_MOST_CHILDREN = 8
_SHOWN = 16
"""Numbers of interpreters in a sentence."""
_MOST_STACK = 1 << 24
"""Bytes of a stack that are read, up to the end of its mapping. RLIMIT_STACK is 8 MiB mostly."""
_MOST_STACKS = 1 << 28
_LEAST_STACK = 1 << 14
"""Bytes of all stacks, which are kept until the end; and of one that comes after them."""
_MOST_READS = 1 << 22
"""Of all Python frames: 10,000 threads with 100 frames need a quarter of them."""
_WRITABLE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw", re.MULTILINE)


class _Copy:
    """The data that was read of a thread.

    Attributes:
        now: as the kernel had it before.
        stack: the bytes at its stack pointer; b"" of one that ran.
        python: its Python, PHP or Ruby frames; None: it has none.
        generated: its frames, generated code among them; None: its process runs neither a JVM nor
            V8.
        monitor: the monitor of a Java object that it waits to enter; None: it waits for none.
        kernel: its frames in the kernel; () of one that ran.
        interpreter: the number of the interpreter that has its innermost Python frame; -1: none.
        is_still: whether it has not run since.
    """

    def __init__(
        self,
        now: ThreadNow,
        stack: bytes,
        python: InterpretedStack | None,
        kernel: Sequence[DumpedFrame],
        interpreter: int = -1,
    ) -> None:
        self.now = now
        self.stack = stack
        self.python = python
        self.kernel = kernel
        self.interpreter = interpreter
        self.generated: GeneratedStack | None = None
        self.monitor: WantedMonitor | None = None
        self.is_still = False


class _State:
    """Python's own view of the threads, by their thread pointers.

    A thread has a state of each interpreter that it runs: its frames stand on the frames of the
    interpreter that called it, so the states are in order from the newest interpreter to the main
    one.

    Args:
        interpreters: with their threads.
        distance: from pthread_self() up to that pointer.
    """

    def __init__(self, interpreters: Sequence[Interpreter] = (), distance: int = 0) -> None:
        self.threads: dict[int, list[tuple[ThreadState, Interpreter]]] = {}
        for interpreter in sorted(interpreters, key=lambda each: -each.number):
            for thread in interpreter.threads:
                states = self.threads.setdefault(thread.pthread + distance, [])
                states.append((thread, interpreter))
        self.numbers = sorted(interpreter.number for interpreter in interpreters)
        self.gils: list[Gil] = [
            interpreter.gil for interpreter in interpreters if interpreter.gil is not None
        ]

    def holders(self, copies: Mapping[int, _Copy]) -> dict[int, int]:
        """Thread IDs by the address of the thread state."""
        return {
            thread.address: tid
            for tid, copy in copies.items()
            for thread, _ in self.threads.get(copy.now.pthread, ())
        }


def dump(
    pid: int, *, native: bool = False, kernel: bool = True, tasks: bool = False
) -> ProcessDump:
    """The stacks of a process.

    Args:
        pid: the process, in our PID namespace.
        native: with the frames of the interpreter itself.
        kernel: with the frames in the kernel.
        tasks: with the tasks of asyncio.

    Raises:
        NoSuchTargetError: there is no such process.
        KernelError: it is another user's, or the kernel refused the program that lists threads.
        NotSupportedError: another machine than x86_64 and arm64.
    """
    began = time.monotonic()
    check_processes((pid,), thread_option="-t")
    notes: list[str] = []
    asked = needing("CAP_BPF", "CAP_PERFMON", without_root=RECORD_INSTEAD)
    with asked, ExitStack() as open_now:
        files = KnownFiles()
        runtimes = find_runtimes(pid, notes, files, open_now)
        python, java, v8, script = runtimes
        generating = runtimes.generating
        library = generating.library if generating is not None else 0
        names = open_now.enter_context(FrameNames(pid, python or script, library, native=native))
        threads = open_now.enter_context(ThreadRegisters(pid, PidNamespace.own()))
        source = _Source(runtimes, names)
        copies, state = _read(pid, source, threads, notes, kernel=kernel)
        notes += _interpreters(state.numbers)
        dumped_tasks = None
        if tasks:  # now: naming the frames takes long
            from purebpf.tools.dump.async_tasks import dump_tasks

            dumped_tasks = dump_tasks(pid, python, notes)
        goroutines = () if python is not None or generating is not None else _find_goroutines(pid)
        holders = state.holders(copies)
        owners = lock_owners(pid, copies, files)
        with names.batch():
            dumped = [
                _with_lock(
                    _describe(pid, copy, state, holders, names), copy, owners.get(copy.now.tid, 0)
                )
                for _, copy in sorted(copies.items())
            ]
    return ProcessDump(
        pid,
        _command(pid),
        ".".join(map(str, python.version)) if python else "",
        python is not None and python.is_free_threaded,
        tuple(dumped),
        tuple(notes),
        time.monotonic() - began,
        dumped_tasks,
        java.release if java else "",
        v8.version if v8 else "",
        goroutines,
        runtimes.version("PHP"),
        runtimes.version("Ruby"),
    )


def _find_goroutines(pid: int) -> tuple[DumpedGoroutines, ...]:
    from purebpf.tools.dump.goroutines import dump_goroutines  # which interpreters do not need

    return dump_goroutines(pid)


def _wanted_monitors(pid: int) -> dict[int, WantedMonitor]:
    """Return the monitors that threads wait to enter, by thread."""
    from purebpf.observe.runtimes.hotspot.monitors_now import read_wanted_monitors

    return {wanted.tid: wanted for wanted in read_wanted_monitors(pid)}


def _with_lock(thread: DumpedThread, copy: _Copy, owner: int) -> DumpedThread:
    """Add the owner of the lock; a monitor counts only of a thread that slept all the time."""
    monitor = copy.monitor
    if monitor is None or not copy.is_still:
        return thread._replace(held_by=owner)
    waits_for = f"{MONITOR}of a {monitor.class_name}" if monitor.class_name else MONITOR.strip()
    return thread._replace(waits_for=waits_for, held_by=monitor.owner)


def _interpreters(numbers: Sequence[int]) -> Iterator[str]:
    """Yield a sentence that lists the interpreters of a process with several."""
    if len(numbers) > 1:
        thread_names = [f"{number} (main)" if number == 0 else str(number) for number in numbers]
        more = f" and {len(thread_names) - _SHOWN} more" if len(thread_names) > _SHOWN else ""
        yield f"{len(thread_names)} interpreters: {', '.join(thread_names[:_SHOWN])}{more}"


class _Source(NamedTuple):
    """The runtimes of a process, and the walker of its native stacks."""

    runtimes: Runtimes
    names: FrameNames


def _read(
    pid: int,
    source: _Source,
    threads: ThreadRegisters,
    notes: list[str],
    *,
    kernel: bool,
) -> tuple[dict[int, _Copy], _State]:
    """All threads, each as it was at one moment if it kept still for long enough."""
    copies: dict[int, _Copy] = {}
    state = _State()
    before = threads.list()
    for number in range(_ROUNDS):
        if number:
            time.sleep(_PAUSE_S)
            before = threads.list()
        state, is_stuck = _copy(pid, source, before, copies, kernel=kernel)
        after = threads.list()
        for tid, copy in copies.items():
            copy.is_still = copy.is_still or _is_still(copy.now, after.get(tid))
        for tid in [tid for tid in copies if tid not in after]:
            del copies[tid]  # it has ended
        if is_stuck:
            notes.append(f"not all of it was read: {STUCK}")
        if is_stuck or all(copy.is_still for copy in copies.values()):
            break
    return copies, state


def _copy(
    pid: int,
    source: _Source,
    threads: Mapping[int, ThreadNow],
    copies: dict[int, _Copy],
    *,
    kernel: bool,
) -> tuple[_State, bool]:
    """Read those that have not been read while they kept still; whether a read did not end."""
    memory = open_process_memory(pid)
    if memory is None:
        return _State(), False
    stack_pointer = native_machine().sp
    python, script = source.runtimes.python, source.runtimes.script
    with memory:
        sizes = StackSizes(_ends(pid), sum(len(copy.stack) for copy in copies.values()))
        reading = python.look(_MOST_READS) if python else None
        distance = python.pointer_distance(reading) if python and reading else 0
        state = _State(reading.interpreters if reading else (), distance or 0)
        runtime = source.runtimes.look()
        monitors = _wanted_monitors(pid) if runtime is not None and runtime.has_monitors else {}
        for tid, thread in threads.items():
            copied = copies.get(tid)
            if copied is not None and copied.is_still:
                continue
            stack = b""
            if thread.is_asleep and thread.registers:
                pointer = thread.registers[stack_pointer] or 0
                stack = memory.read(pointer, sizes.of(pointer))
            frames, interpreter = None, -1
            if python and reading and thread.pthread in state.threads:
                frames, interpreter = _join(python, reading, state.threads[thread.pthread])
            elif script:
                is_first = tid == pid
                frames = script.frames(thread.pthread, is_first=is_first, most_reads=_MOST_READS)
            in_kernel = kernel_frames(pid, tid) if kernel and thread.is_asleep else ()
            copy = _Copy(thread, stack, frames, in_kernel, interpreter)
            if runtime is not None and stack and frames is None:
                walk = runtime.frames()
                copy.generated = source.names.generated_stack(thread, stack, walk)
                copy.monitor = monitors.get(tid)
            if copied is not None and frames is not None and not thread.is_asleep:
                copy.is_still = copied.python == frames  # twice the same: it was read whole
            copies[tid] = copy
        engines = [each for each in (python, script) if each is not None]
        is_stuck = memory.is_stuck or any(engine.is_stuck for engine in engines)
    return state, is_stuck


def _join(
    python: PythonProcess,
    reading: PythonReading,
    states: Sequence[tuple[ThreadState, Interpreter]],
) -> tuple[InterpretedStack, int]:
    """Return the frames of a thread in all its interpreters, and the number of the innermost.

    The order of two subinterpreters that call each other is not known: a problem says so.
    """
    stacks = [(python.frames(reading, thread.address), own.number) for thread, own in states]
    busy = [(stack, number) for stack, number in stacks if stack.frames or stack.problem]
    if not busy:
        return stacks[-1]
    problems = [stack.problem for stack, _ in busy if stack.problem]
    if sum(number > 0 for _, number in busy) > 1:
        problems.append("frames of several subinterpreters: their order is a guess")
    frames = tuple(frame for stack, _ in busy for frame in stack.frames)
    return InterpretedStack(frames, "; ".join(problems)), busy[0][1]


def _ends(pid: int) -> list[tuple[int, int]]:
    """Return the ranges of a process's memory that may be a stack."""
    ranges = _WRITABLE.findall(proc.maps(pid) or "")
    return [(int(start, 16), int(end, 16)) for start, end in ranges]


class StackSizes:
    """Chooses the number of bytes to read of each stack.

    Args:
        mappings: where memory that may be a stack starts and ends, in order.
        read: bytes of stacks that were read before.
    """

    def __init__(self, mappings: list[tuple[int, int]], read: int = 0) -> None:
        self._mappings = mappings
        self._left = _MOST_STACKS - read

    def of(self, pointer: int) -> int:
        """Return the bytes from a stack pointer to the end of the stack: all of them are in use.

        A thread's pointer may lie anywhere; less is read once all stacks are too much.
        """
        at = bisect_right(self._mappings, (pointer, _HIGHEST)) - 1
        if at < 0:
            return 0
        used = min(_MOST_STACK, self._mappings[at][1] - pointer, max(self._left, _LEAST_STACK))
        self._left -= max(0, used)
        return max(0, used)


def _is_still(before: ThreadNow, after: ThreadNow | None) -> bool:
    return (
        after is not None
        and before.is_asleep
        and after.is_asleep
        and (before.switches, before.pc, before.registers)
        == (after.switches, after.pc, after.registers)
    )


def _describe(
    pid: int,
    copy: _Copy,
    state: _State,
    holders: Mapping[int, int],
    names: FrameNames,
) -> DumpedThread:
    now = copy.now
    copied = state.threads.get(now.pthread, [])
    if copy.generated is not None:
        frames = names.generated_frames(copy.generated, now.comm)
        problems = list(copy.generated.problems)
    else:
        frames, problems = names.frames(now, copy.stack, copy.python)
    if not copy.is_still:
        remark = "it ran while it was read" if now.is_asleep else "it runs"
        problems.append(f"{remark}: frames may be of different moments")
    return DumpedThread(
        tid=now.tid,
        name=now.comm,
        state=_state(now),
        waits_for=describe_wait(pid, now, state.gils, holders),
        is_python=bool(copied),
        holds_gil=any(gil.holder in {thread.address for thread, _ in copied} for gil in state.gils),
        interpreter=copy.interpreter,
        frames=(*copy.kernel, *frames),
        problems=tuple(problems),
    )


def _state(thread: ThreadNow) -> str:
    if thread.is_on_cpu:
        return "runs"
    return "ready" if thread.state == "R" else STATES.get(thread.state, thread.state)


def _command(pid: int) -> str:
    try:
        return read_arguments(pid) or proc.comm(pid) or ""
    except KernelError:
        return ""
