"""Waits in futex(2) that began before the run and did not end: the program saw neither end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from purebpf.findings.rings import find_ring
from purebpf.measure.blocked_threads import blocked_threads
from purebpf.measure.lock_owners import lock_owners
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = ["OldWait", "OldWaits", "count_old_waits", "describe_held"]

_MOST_HOLDERS, _MOST_NUMBERS = 5, 4


class OldWait(NamedTuple):
    """A thread that waits since before the run.

    Attributes:
        holder: the thread that has its lock; 0: not known.
        function: the innermost own function on its stack; "": not known.
    """

    pid: int
    tid: int
    holder: int = 0
    function: str = ""


class OldWaits:
    """Finds threads of processes that sleep in futex(2) and have not run since it was made.

    Args:
        pids: the processes.
        functions: returns the own functions of a process's threads, by thread ID.
    """

    def __init__(
        self, pids: Iterable[int], functions: Callable[[int], Mapping[int, str]] = lambda _: {}
    ) -> None:
        self._before = {pid: _switches(pid) for pid in pids}
        self._functions = functions

    def now(self) -> list[OldWait]:
        """Return the threads, by process and thread ID."""
        waits = []
        for pid, before in self._before.items():
            after = _switches(pid)
            blocked = {one.tid for one in blocked_threads((pid,)) if one.call.startswith("futex")}
            same = [tid for tid in sorted(blocked) if before.get(tid, -1) == after.get(tid)]
            owners = lock_owners(pid, after) if same else {}
            names = self._functions(pid) if owners else {}
            waits += [OldWait(pid, tid, owners.get(tid, 0), names.get(tid, "")) for tid in same]
        return waits


def _switches(pid: int) -> dict[int, int]:
    """Context switches of the threads of a process."""
    counts = {}
    for tid in proc.threads(pid):
        status = proc.status(f"{pid}/task/{tid}")
        if status is not None:
            names = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
            counts[tid] = sum(int(status.get(name, "0")) for name in names)
    return counts


def describe_held(waits: Iterable[OldWait]) -> Iterator[str]:
    """Describe the waits with a known holder, a deadlock first. Nothing if there are none."""
    for pid, waiting in _by_process(waits).items():
        held = {wait.tid: wait.holder for wait in waiting if wait.holder}
        where = {wait.tid: f" in {wait.function}" for wait in waiting if wait.function}
        ring = find_ring(held)
        if ring:
            steps = ", ".join(
                f"{tid}{where.get(tid, '')} waits for the lock of {held[tid]}" for tid in ring
            )
            yield f"deadlock in process {pid}: thread {steps}"
        behind: dict[tuple[int, str], list[int]] = {}
        for tid, holder in held.items():
            if tid not in ring:
                behind.setdefault((holder, where.get(tid, "")), []).append(tid)
        asleep = {wait.tid for wait in waiting} - held.keys()
        for (holder, place), tids in list(behind.items())[:_MOST_HOLDERS]:
            text = f"{_name_threads(tids)} for the lock of {holder} since before the run{place}"
            too = f"; {holder} waits since then{where.get(holder, '')}, too"
            yield f"{text}{too}" if holder in asleep else text


def _name_threads(tids: Sequence[int]) -> str:
    """Return `thread 7 waits`, or `3 threads (7, 8, 9) wait`."""
    if len(tids) == 1:
        return f"thread {tids[0]} waits"
    more = ", ..." if len(tids) > _MOST_NUMBERS else ""
    return f"{len(tids)} threads ({', '.join(map(str, tids[:_MOST_NUMBERS]))}{more}) wait"


def count_old_waits(waits: Iterable[OldWait]) -> Iterator[str]:
    """Count the waits of each process, and name the command that shows their functions."""
    for pid, waiting in _by_process(waits).items():
        number = f"{len(waiting)} threads wait" if len(waiting) > 1 else "1 thread waits"
        yield (
            f"{number} in futex(2) since before the run, for a lock or for something to do:"
            f" purebpf dump {pid} shows where"
        )


def _by_process(waits: Iterable[OldWait]) -> dict[int, list[OldWait]]:
    processes: dict[int, list[OldWait]] = {}
    for wait in waits:
        processes.setdefault(wait.pid, []).append(wait)
    return processes
