"""Processes that use the CPUs while others wait: `schedstat` and `stat` of /proc, and PSI."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from purebpf.late_pattern import compile_later
from purebpf.measure.proc_files import entries, read_text
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = ["Neighbour", "NeighbourWatch", "PressureWatch", "describe_neighbours"]

_QUEUED, _OF_OWN = 0.1, 0.5
"""Threads that wait for a CPU, in the mean, and by the CPUs that they use: fewer are no news."""
_HOG, _HOG_OF_FEW = 0.3, 0.15
"""CPUs of a process that is worth its name; of one that shares a part of the CPUs with them."""
_NAMED = 2
_MOST_PROCESSES = 2000
"""15 us each, at the start of a command."""
_PRESSED = 0.5
"""The part of the time in which threads wait for a CPU that is worth a line."""
_SOME = compile_later(r"some .*total=(\d+)")


class Neighbour(NamedTuple):
    """A process, and the CPUs that it used.

    Attributes:
        is_inside: it may use no other CPUs than those who wait.
    """

    pid: int
    comm: str
    cpus: float
    is_inside: bool = True


class NeighbourWatch:
    """Reads the run queue times of processes, and the CPU time of all others, when it is made and
    when it is asked.

    Args:
        pids: the processes that may wait for a CPU; () for none.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = frozenset(pids)
        self._began_s = time.monotonic()
        self._queued_ns = {pid: _queued_ns(pid) for pid in self._pids}
        self._used_s = _used_s() if self._pids else {}

    def sentences(self) -> list[str]:
        """Return a sentence if the processes wait for CPUs that others use."""
        elapsed_s = max(0.001, time.monotonic() - self._began_s)
        grown_ns = (_queued_ns(pid) - before for pid, before in self._queued_ns.items())
        queued = sum(max(0, grown) for grown in grown_ns) / 1e9 / elapsed_s
        used = {
            pid: (used_s - self._used_s.get(pid, 0.0)) / elapsed_s
            for pid, used_s in (_used_s().items() if queued >= _QUEUED else ())
        }
        if queued < max(_QUEUED, _OF_OWN * sum(used.get(pid, 0.0) for pid in self._pids)):
            return []
        allowed = set[int]().union(*map(_allowed, self._pids))
        neighbours = [
            Neighbour(pid, proc.comm(pid) or "?", cpus, not _allowed(pid) - allowed)
            for pid, cpus in used.items()
            if cpus >= _HOG_OF_FEW and pid not in self._pids | {os.getpid()}
            if _allowed(pid) & allowed
        ]
        return describe_neighbours(queued, neighbours, len(allowed))


class PressureWatch:
    """Reads the pressure on the CPUs of the machine (Linux 4.20, where PSI is on), as
    `NeighbourWatch`.
    """

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._waited_us = _waited_us()

    def sentences(self) -> list[str]:
        """Return a sentence if threads waited for a CPU most of the time."""
        elapsed_s = max(0.001, time.monotonic() - self._began_s)
        share = (_waited_us() - self._waited_us) / 1e6 / elapsed_s
        if share < _PRESSED:
            return []
        part = f"{100 * min(1.0, share):.0f} %"
        return [f"run queue: threads waited for a CPU in {part} of the time (purebpf runqlat)"]


def describe_neighbours(queued: float, neighbours: Iterable[Neighbour], cpus: int) -> list[str]:
    """Return a sentence about threads that wait for a CPU, and who uses it.

    Args:
        queued: the threads that wait, in the mean.
        neighbours: processes that may use the same CPUs.
        cpus: how many CPUs that are.
    """
    is_few = cpus < (os.cpu_count() or 1)
    least = _HOG_OF_FEW if is_few else _HOG
    hogs = sorted((one for one in neighbours if one.cpus >= least), key=lambda one: -one.cpus)
    hogs = [one for one in hogs if one.is_inside] or hogs
    if queued < _QUEUED or not hogs:
        return []
    from purebpf.results.model.spelling import printable  # not before there is a result

    names = " and ".join(
        f"{printable(one.comm)} ({one.pid}) {one.cpus:.2f}" for one in hogs[:_NAMED]
    )
    where = f"the {cpus} CPUs" if cpus > 1 else "the one CPU"
    where = f"of {where} that they may use" if hogs[0].is_inside else "of all CPUs"
    return [f"run queue: {queued:.1f} threads wait for a CPU in the mean; {where}, {names}"]


def _queued_ns(pid: int) -> int:
    """Return the time that the threads of a process have waited for a CPU."""
    total = 0
    for tid in entries(f"/proc/{pid}/task"):
        fields = read_text(f"/proc/{pid}/task/{tid}/schedstat").split()
        total += int(fields[1]) if len(fields) > 1 else 0
    return total


def _used_s() -> Mapping[int, float]:
    """Return the CPU seconds of each process; none where there are many, as reading takes long."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    pids = [int(name) for name in entries("/proc") if name.isdigit()]
    used = {}
    for pid in pids if len(pids) <= _MOST_PROCESSES else ():
        fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
        used[pid] = sum(map(int, fields[11:13])) * tick_s
    return used


def _allowed(pid: int) -> set[int]:
    """Return the CPUs that a process may use; none if it has ended."""
    with suppress(OSError):
        return os.sched_getaffinity(pid)
    return set()


def _waited_us() -> int:
    """Return for how long a thread or more have waited for a CPU; 0 without PSI."""
    match = _SOME.search(read_text("/proc/pressure/cpu"))
    return int(match[1]) if match else 0
