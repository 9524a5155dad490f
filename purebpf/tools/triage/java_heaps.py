"""`JavaHeapWatch`: the old generations of JVMs, at several looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from purebpf.errors import KernelError
from purebpf.findings.facts import JavaHeap
from purebpf.runtimes.hotspot.perf_data import read_counters
from purebpf.syscall import proc
from purebpf.syscall.process_memory import open_process_memory, reading_others

__all__ = ["JavaHeapWatch"]

_MOST_PROCESSES = 16
_MOST_BYTES = 1 << 20
_OLD = "sun.gc.generation.1.space.0"
_COLLECTIONS = "sun.gc.collector.{}.invocations"


class JavaHeapWatch:
    """Reads the counters that each JVM maps for jstat; nothing stops.

    Args:
        is_java: whether a process is a JVM.
    """

    def __init__(self, is_java: Callable[[int], bool]) -> None:
        self._is_java = is_java
        self._maps: dict[int, tuple[int, int]] | None = None
        self._looks: dict[int, list[dict[str, int]]] = {}

    def tick(self, pids: Iterable[int]) -> None:
        """Look once, at the JVMs of the first look."""
        with reading_others():
            if self._maps is None:
                found = [pid for pid in pids if self._is_java(pid)][:_MOST_PROCESSES]
                self._maps = {pid: place for pid in found if (place := _mapped(pid)) is not None}
            for pid, (start, size) in self._maps.items():
                counters = read_counters(_read(pid, start, size))
                if f"{_OLD}.used" in counters:
                    self._looks.setdefault(pid, []).append(counters)

    def finish(self) -> tuple[JavaHeap, ...]:
        """The heaps of JVMs whose collector has generations."""
        return tuple(_heap(pid, looks) for pid, looks in self._looks.items())


def _heap(pid: int, looks: list[dict[str, int]]) -> JavaHeap:
    first, last = looks[0], looks[-1]
    young, old = (
        last.get(_COLLECTIONS.format(number), 0) - first.get(_COLLECTIONS.format(number), 0)
        for number in (0, 1)
    )
    used = tuple(one[f"{_OLD}.used"] for one in looks)
    # G1 marks its old regions concurrently, in phases that are a collector of their own
    before = sum(first.get(_COLLECTIONS.format(number), 0) for number in (1, 2))
    return JavaHeap(pid, used, last.get(f"{_OLD}.maxCapacity", 0), young, old, before)


def _mapped(pid: int) -> tuple[int, int] | None:
    """Return the address and the size of the counters of a JVM."""
    for line in (proc.maps(pid) or "").splitlines():
        if "/hsperfdata_" in line:
            start, _, end = line.partition(" ")[0].partition("-")
            return int(start, 16), min(int(end, 16) - int(start, 16), _MOST_BYTES)
    return None


def _read(pid: int, start: int, size: int) -> bytes:
    try:
        memory = open_process_memory(pid)
    except KernelError:
        return b""
    if memory is None:
        return b""
    with memory:
        return memory.read(start, size)
