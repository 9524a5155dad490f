"""The monitors that threads of JVMs wait for; purebpf asks no JVM for a thread dump."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.errors import FormatError, KernelError
from purebpf.findings.facts import JavaMonitor
from purebpf.observe.runtimes.hotspot.libjvm import find_library, read_exports
from purebpf.runtimes.cpython.memory import CachedMemory
from purebpf.runtimes.hotspot.monitors import wanted_monitors
from purebpf.runtimes.hotspot.vm_structs import EXPORTS
from purebpf.syscall.process_memory import open_process_memory, reading_others

__all__ = ["java_monitors"]

_MOST_PROCESSES = 8


def java_monitors(pids: Iterable[int]) -> Iterator[JavaMonitor]:
    """The monitors that threads of these processes wait to enter now."""
    with reading_others():
        for pid in list(pids)[:_MOST_PROCESSES]:
            try:
                yield from _of_process(pid)
            except (KernelError, FormatError, OSError):
                continue


def _of_process(pid: int) -> Iterator[JavaMonitor]:
    mapped = find_library(pid)
    memory = open_process_memory(pid)
    if mapped is None or memory is None:
        return
    with memory:
        symbols = read_exports(mapped, pid, EXPORTS)
        if not symbols:
            return
        for wanted in wanted_monitors(CachedMemory(memory.read), symbols):
            yield JavaMonitor(pid, *wanted)
