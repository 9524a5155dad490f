"""The monitors that threads of a JVM wait to enter now; purebpf asks no JVM for a thread dump."""

from __future__ import annotations

from purebpf.errors import FormatError, KernelError
from purebpf.observe.runtimes.hotspot.libjvm import find_library, read_exports
from purebpf.runtimes.hotspot.monitors import WantedMonitor, wanted_monitors
from purebpf.runtimes.hotspot.vm_structs import EXPORTS
from purebpf.runtimes.memory import CachedMemory
from purebpf.syscall.process_memory import open_process_memory

__all__ = ["read_wanted_monitors"]


def read_wanted_monitors(pid: int) -> list[WantedMonitor]:
    """Return the threads that wait for monitors; [] for a process whose monitors cannot be read."""
    try:
        mapped, memory = find_library(pid), open_process_memory(pid)
        if memory is None:
            return []
        with memory:
            symbols = read_exports(mapped, pid, EXPORTS) if mapped is not None else None
            return wanted_monitors(CachedMemory(memory.read), symbols) if symbols else []
    except (KernelError, FormatError, OSError):
        return []
