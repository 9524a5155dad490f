"""The threads that have the locks which other threads of a process wait for."""

from __future__ import annotations

from collections.abc import Container

from purebpf.measure.blocked_threads import blocked_threads
from purebpf.measure.proc_files import link
from purebpf.measure.python_locks import python_lock_holders
from purebpf.observe.runtimes.cpython.python_process import KnownFiles

__all__ = ["lock_owners"]


def lock_owners(
    pid: int, threads: Container[int], files: KnownFiles | None = None
) -> dict[int, int]:
    """Return the holder's thread ID by the waiting thread's, where it can be read.

    A mutex of glibc has its owner in its third word. Python's locks have none; a thread that took
    one by `with` has it on its stack.

    Args:
        pid: the process.
        threads: its threads.
        files: interpreters' files that were read before.
    """
    blocked = [one for one in blocked_threads((pid,)) if one.call.startswith("futex")]
    exe = link(f"/proc/{pid}/exe")
    held = python_lock_holders(blocked, lambda _: exe, files).get(pid, {})
    owners = {}
    for one in blocked:
        owner = held.get(one.arguments[0]) or one.owner
        if owner != one.tid and owner in threads:
            owners[one.tid] = owner
    return owners
