"""Interpreters of a process, their threads, and the thread that holds each GIL."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.runtimes.cpython.layout import NONE, Layout
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["Gil", "Interpreter", "ThreadState", "main_interpreter", "read_interpreters"]

_MOST_INTERPRETERS = 1024
_MOST_THREADS = 1 << 16


class Gil(NamedTuple):
    """A global interpreter lock.

    Attributes:
        start, end: its range of addresses: a thread that waits in futex(2) in this range waits for
            it.
        holder: the thread state that has it; 0: it is free.
    """

    start: int
    end: int
    holder: int

    def has(self, address: int) -> bool:
        """Return True if a wait at an address is a wait for this lock."""
        return self.start <= address < self.end


class ThreadState(NamedTuple):
    """A thread that Python knows.

    Attributes:
        address: of its PyThreadState.
        pthread: the result of pthread_self(): with glibc and musl the address that the register fs
            holds.
        native_id: its thread ID in its own PID namespace; 0 before 3.11.
    """

    address: int
    pthread: int
    native_id: int


class Interpreter(NamedTuple):
    """An interpreter.

    Attributes:
        number: 0 for the main one.
        threads: those that it knows.
        gil: None where that cannot be read.
        address: of its PyInterpreterState.
    """

    number: int
    threads: tuple[ThreadState, ...]
    gil: Gil | None
    address: int = 0


def read_interpreters(layout: Layout, memory: Memory, runtime: int) -> list[Interpreter]:
    """All interpreters of the `_PyRuntime` at an address; those that can be read.

    The lists are of a process that runs: a thread that starts or ends now may be missing.
    """
    interpreters = []
    known: set[int] = set()
    try:
        first = memory.number(runtime + layout.interpreters)
    except UnreadableError:
        return []
    for address in _linked(memory, first, layout.interpreter_next, _MOST_INTERPRETERS):
        try:
            number = memory.number(address + layout.interpreter_id)
            head = memory.number(address + layout.threads)
        except UnreadableError:
            continue
        threads = tuple(_threads(layout, memory, head, known))
        gil = _gil(layout, memory, runtime, address)
        interpreters.append(Interpreter(number, threads, gil, address))
    return interpreters


def main_interpreter(layout: Layout, memory: Memory, runtime: int) -> int:
    """Return the address of the main interpreter, the last one of the list; 0: none yet."""
    try:
        first = memory.number(runtime + layout.interpreters)
    except UnreadableError:
        return 0
    return [0, *_linked(memory, first, layout.interpreter_next, _MOST_INTERPRETERS)][-1]


def _threads(layout: Layout, memory: Memory, first: int, known: set[int]) -> Iterator[ThreadState]:
    """Return the threads of an interpreter; `known` are the threads of all interpreters before."""
    for address in _linked(memory, first, layout.thread_next, _MOST_THREADS, known):
        try:
            pthread = memory.number(address + layout.thread_id)
            has_native = layout.native_id != NONE
            native = memory.number(address + layout.native_id) if has_native else 0
        except UnreadableError:
            continue
        yield ThreadState(address, pthread, native)


def _gil(layout: Layout, memory: Memory, runtime: int, interpreter: int) -> Gil | None:
    try:
        if layout.gil_in_runtime != NONE:
            start = runtime + layout.gil_in_runtime
        else:
            start = memory.number(interpreter + layout.gil_in_interpreter)
        is_locked = memory.number(start + layout.gil_locked, 4) == 1
        holder = memory.number(start + layout.gil_holder) if is_locked else 0
    except UnreadableError:
        return None
    return Gil(start, start + layout.gil_size, holder)


def _linked(
    memory: Memory, address: int, following: int, most: int, known: set[int] | None = None
) -> Iterator[int]:
    """Yield the addresses of a linked list, up to one that is in the list already."""
    seen = set() if known is None else known
    while address and address not in seen and len(seen) < most:
        seen.add(address)
        yield address
        try:
            address = memory.number(address + following)
        except UnreadableError:
            return
