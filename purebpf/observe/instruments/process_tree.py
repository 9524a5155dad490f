"""`ProcessTree`: keeps a map of processes complete while they start and end children."""

from __future__ import annotations

from contextlib import ExitStack

from purebpf import objects
from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.loader.load.load import load
from purebpf.loader.maps.map import Map
from purebpf.loader.types.kernel_btf import kernel_btf

__all__ = ["CAPACITY", "ProcessTree", "is_supported"]

CAPACITY = 65536
"""Processes that a tree has room for at any one time: 4 MB of the kernel's memory."""


def is_supported() -> bool:
    """Return True if the kernel shows its types, which the programs need."""
    try:
        kernel_btf()
    except NotSupportedError:
        return False
    return True


class ProcessTree(Closing):
    """Enters the children of each process in a map into it, before they run.

    A program at the kernel's tracepoint follows a process from its fork on, at the same cost
    however short the children live. An inherited perf event of a clock misses them: each child's
    own event has a whole period to go.

    Args:
        tgids: by process ID; `CAPACITY` entries. It stays the caller's.
        command_pid: enters at its execve; 0: none.
        namespace: the PID namespace of the numbers, as (device, inode); (0, 0): the initial.

    Raises:
        NotSupportedError: the kernel does not show its types (CONFIG_DEBUG_INFO_BTF), which
            programs at `tp_btf` need (Linux 5.5).
        KernelError: the kernel refused.
    """

    def __init__(
        self, tgids: Map, *, command_pid: int = 0, namespace: tuple[int, int] = (0, 0)
    ) -> None:
        device, inode = namespace
        spec = (
            objects.spec("process_tree")
            .set(command_tgid=command_pid, pid_namespace_dev=device, pid_namespace_ino=inode)
            .resize(tgids=tgids.info.max_entries)
        )
        with ExitStack() as undo:
            self._object = undo.enter_context(load(spec, maps={"tgids": tgids}))
            self._object.attach()
            undo.pop_all()

    @property
    def missed(self) -> int:
        """Children that could not be entered: the map was full, or busy."""
        return int(self._object.maps["tree_stats"][0].missed)

    def close(self) -> None:
        """Follow no longer; again is harmless."""
        self._object.close()
