"""The user stacks of threads that sleep, read from outside; BPF walks only the current task's.

The caller checks that a thread did not run while it was read: its stack is none otherwise.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from contextlib import ExitStack
from itertools import groupby
from typing import TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.observe.instruments.stack_maps import MAX_DEPTH
from purebpf.observe.symbols.sleeping_stack import stack_bytes, user_stack
from purebpf.observe.unwind.native_machine import native_code_bits, native_machine
from purebpf.observe.unwind.user_stacks import Trace, UserStacks
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory
from purebpf.tuples import NamedTuple
from purebpf.unwind.sent_registers import SentRegisters

if TYPE_CHECKING:
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables

__all__ = ["ReadPython", "ReadStack", "Sleeping", "read_python", "read_stacks", "unwind"]

_FRAME_POINTERS = 18  # purebpf.unwind.reason.Reason


class Sleeping(NamedTuple):
    """A thread of a process, and where it is in user space. `pthread` is 0 where not known."""

    pid: int
    tid: int
    registers: SentRegisters
    pthread: int


class ReadStack(NamedTuple):
    """The parts of a stack that were read: by frame pointers, or, in `copy`, its memory."""

    trace: Trace
    copy: bytes = b""


class ReadPython(NamedTuple):
    """The words for the Python frames of a thread, innermost first.

    `waits_for_gil`: it has called futex(2) with an address of Python's lock, if it sleeps in that.
    """

    words: tuple[int, ...]
    waits_for_gil: bool


def read_stacks(threads: Iterable[Sleeping], *, copy: bool) -> dict[int, ReadStack]:
    """The stacks by thread; of one that is not there nothing could be read.

    Args:
        threads: of any processes.
        copy: for `unwind`, which does without frame pointers.
    """
    stacks: dict[int, ReadStack] = {}
    with ExitStack() as whole:  # holds one memory, so that the child that reads stays
        is_held = False
        for pid, of_process in groupby(sorted(threads, key=_pid), _pid):
            with ExitStack() as stack:
                memory = _memory(pid)
                holds = memory.is_left and not is_held
                (whole if holds else stack).enter_context(memory)
                is_held = is_held or holds
                for thread in of_process:
                    read = _read_stack(memory, thread.registers, copy=copy)
                    if not memory.is_stuck:
                        stacks[thread.tid] = read
    return stacks


def _read_stack(memory: ProcessMemory, sent: SentRegisters, *, copy: bool) -> ReadStack:
    machine, values = native_machine(), sent.values
    sp, fp = values[machine.sp] or 0, values[machine.fp] or 0
    if copy:
        content = stack_bytes(memory, sp)
        if content:
            return ReadStack(Trace((sent.pc,), _FRAME_POINTERS, 0), content)
    code_bits = native_code_bits()
    addresses = user_stack(memory, sent.pc, sp, fp, MAX_DEPTH, code_bits=code_bits)
    return ReadStack(Trace(addresses, _FRAME_POINTERS, 0))


def unwind(
    walking: UserStacks | None, thread: Sleeping, stack: ReadStack, python: ReadPython | None
) -> Trace:
    """The stack of a thread, with the words for its Python frames behind the native ones."""
    if walking is None or not stack.copy:
        return stack.trace
    words = () if python is None else python.words
    trace = walking.unwind(thread.pid, thread.registers, stack.copy)
    return trace._replace(addresses=(*trace.addresses[: MAX_DEPTH - len(words)], *words))


def read_python(
    python: PythonTables, threads: Iterable[Sleeping], still: Container[int] | None = None
) -> dict[int, ReadPython]:
    """Return the Python frames of threads, by thread; none for a missing thread.

    Frames are read of those that are `still` where they were; None: of all.
    """
    by_process: dict[int, dict[int, Sleeping]] = {}
    for thread in threads:
        if thread.pthread:
            by_process.setdefault(thread.pid, {})[thread.pthread] = thread
    known: dict[int, ReadPython] = {}
    for pid, of_process in by_process.items():
        wanted = [at for at, thread in of_process.items() if still is None or thread.tid in still]
        first = next((at for at, thread in of_process.items() if thread.tid == pid), 0)
        sleeping = python.read_sleeping(pid, wanted, first)
        for pthread, thread in of_process.items():
            argument = thread.registers.values[native_machine().argument] or 0
            waits = any(gil.has(argument) for gil in sleeping.gils)
            words = sleeping.words.get(pthread, ())
            if waits or words:
                known[thread.tid] = ReadPython(words, waits)
    return known


def _pid(thread: Sleeping) -> int:
    return thread.pid


def _memory(pid: int) -> ProcessMemory:
    """Return the memory of a process; no read succeeds if it has ended, or is not ours."""
    try:
        memory = open_process_memory(pid)
    except KernelError:
        memory = None
    return ProcessMemory(-1) if memory is None else memory
