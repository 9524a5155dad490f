"""The place of a kprobe or uprobe, as a value."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["EVERY_PROCESS", "Probe"]

EVERY_PROCESS = -1


class Probe(NamedTuple):
    """A place to probe.

    Attributes:
        pmu: "kprobe" or "uprobe".
        name: the function of the kernel, or the path of the file, as the kernel has it.
        offset: bytes from the function's start, or into the file.
        returns: at the function's return instead.
        pid: the process that has it in memory, 0 for our own; -1 for every one (uprobe).
        semaphore: the file offset of a counter that is raised while the probe is there (uprobe).
    """

    pmu: str
    name: bytes
    offset: int = 0
    returns: bool = False
    pid: int = EVERY_PROCESS
    semaphore: int = 0
