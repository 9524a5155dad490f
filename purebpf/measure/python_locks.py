"""The holders of locks that Python threads wait for, read from outside: no thread stops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from purebpf.errors import PurebpfError
from purebpf.findings.facts import Blocked
from purebpf.late_pattern import compile_later
from purebpf.measure.thread_numbers import own_numbers
from purebpf.observe.runtimes.cpython.python_process import KnownFiles, find_python
from purebpf.runtimes.cpython.held_locks import HeldLock, held_locks
from purebpf.runtimes.memory import UnreadableError
from purebpf.syscall.process_memory import reading_others

__all__ = ["python_lock_holders"]

_PYTHON = compile_later(r"/(python|uwsgi|gunicorn)[^/]*$")
_MOST_PROCESSES, _MOST_THREADS = 8, 300
"""26 ms for 20 threads."""


def python_lock_holders(
    blocked: Iterable[Blocked], exe: Callable[[int], str], files: KnownFiles | None = None
) -> dict[int, dict[int, int]]:
    """The thread that holds a lock by the address of its futex, by process.

    Args:
        blocked: threads in system calls.
        exe: returns the program of a process.
        files: interpreters' files that were read before.
    """
    waiting: dict[int, dict[int, int]] = defaultdict(dict)
    for thread in blocked:
        if thread.call == "futex" and _PYTHON.search(exe(thread.pid)):
            waiting[thread.pid][thread.tid] = thread.arguments[0]
    busiest = sorted(waiting, key=lambda pid: -len(waiting[pid]))[:_MOST_PROCESSES]
    holders = {}
    with reading_others():
        for pid in busiest:
            found = _holders(pid, waiting[pid], files)
            if found:
                holders[pid] = found
    return holders


def _holders(pid: int, waiting: dict[int, int], files: KnownFiles | None) -> dict[int, int]:
    """Return the holders in one process; `waiting` has the futex of each thread that waits."""
    try:
        python = find_python(pid, files)
        if python is None:
            return {}
        with python:
            reading = python.look(lines=False)
            threads = [
                thread for interpreter in reading.interpreters for thread in interpreter.threads
            ]
            threads = threads[:_MOST_THREADS]
            locks = list(held_locks(python.version, python.layout, reading.memory, threads))
    except (PurebpfError, UnreadableError):
        return {}
    seen = own_numbers(pid)
    numbers = {thread.pthread: seen.get(thread.native_id, thread.native_id) for thread in threads}
    return _one_holder_each(locks, numbers, waiting)


def _one_holder_each(
    locks: Iterable[HeldLock], numbers: dict[int, int], waiting: dict[int, int]
) -> dict[int, int]:
    """Return the thread that has a lock and waits for another one or none; no thread, if two may
    have it.
    """
    candidates: dict[int, set[int]] = defaultdict(set)
    for lock in locks:
        tid = numbers.get(lock.owner or lock.thread, 0)
        if tid and (lock.owner or waiting.get(tid) != lock.futex):
            candidates[lock.futex].add(tid)
    return {futex: tids.pop() for futex, tids in candidates.items() if len(tids) == 1}
