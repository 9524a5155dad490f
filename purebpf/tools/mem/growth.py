"""`GrowthWatch`: the memory of processes before and after a run, from /proc."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from purebpf.measure.proc_files import read_text
from purebpf.syscall import proc
from purebpf.tools.mem.areas import sum_areas
from purebpf.tuples import NamedTuple

__all__ = ["Growth", "GrowthWatch"]

_MOST = 64
"""Processes; a reading takes a millisecond for each 100 MB."""
_LARGE_KB = 4 << 20
"""Of a process with more memory only the sum is read: areas would take 50 ms or more."""
_FIELDS = ("RssAnon", "RssShmem", "VmSwap")


class Growth(NamedTuple):
    """The memory of a process without pages of files, in bytes, and its parts by area."""

    pid: int
    name: str
    before: int
    after: int
    areas: dict[str, int]


class GrowthWatch:
    """Reads the memory of processes when it is made, and again by `read`."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._before = {
            pid: areas for pid in islice(pids, _MOST) if (areas := _read(pid)) is not None
        }

    def read(self) -> list[Growth]:
        """Return the growth of the processes that still live, the largest first."""
        grown = []
        for pid, before in self._before.items():
            after = _read(pid)
            if after is None:
                continue
            names = {*before, *after}
            areas = {name: after.get(name, 0) - before.get(name, 0) for name in names}
            sums = sum(before.values()), sum(after.values())
            grown.append(Growth(pid, proc.comm(pid) or "", *sums, areas))
        return sorted(grown, key=lambda one: one.before - one.after)


def _read(pid: int) -> dict[str, int] | None:
    """Return the sizes of the areas of a process; None if it has ended."""
    status = proc.status(pid)
    if status is None or "VmRSS" not in status:
        return None
    sizes = [int(status.get(name, "0").split()[0]) for name in _FIELDS]
    if sum(sizes) <= _LARGE_KB:
        areas = sum_areas(read_text(f"/proc/{pid}/smaps"))
        if areas:
            return areas
    return {"": sum(sizes) * 1024}
