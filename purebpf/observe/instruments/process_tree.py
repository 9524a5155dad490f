"""`ProcessTree`: keeps a map of processes complete while they start, end, and change names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from purebpf import objects
from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.loader.load.load import load
from purebpf.loader.maps.map import Map
from purebpf.loader.types.kernel_btf import has_kernel_btf
from purebpf.observe.instruments.task_filter import CAPACITY, TaskFilter
from purebpf.syscall import proc

__all__ = [
    "CAPACITY",
    "ProcessTree",
    "encode_name",
    "follow",
    "is_supported",
    "processes_called",
]

_NAME_BYTES = 15
"""That the kernel keeps of a name (TASK_COMM_LEN - 1)."""


def is_supported() -> bool:
    """Return True if the kernel shows its types, which the programs need."""
    return has_kernel_btf()


class ProcessTree(Closing):
    """Enters the children of each process in a map into it, before they run.

    Given a name, it enters each process while its first thread has that name, as /proc/PID/comm
    shows it: from execve, prctl(PR_SET_NAME) or fork on, until the process takes another name.
    `children` then says if children of these processes enter as well; if so, processes also stay
    under another name.

    A program at the kernel's tracepoint follows a process from its fork on, at the same cost
    however short the children live. An inherited perf event of a clock misses them: each child's
    own event has a whole period to go.

    Args:
        tgids: by process ID; `CAPACITY` entries. It stays the caller's.
        command_pid: enters at its execve; 0: none.
        namespace: the PID namespace of the numbers, as (device, inode); (0, 0): the initial.
        name: of processes; None: names do not matter. This process never enters by its name.
        children: enter the children of processes in the map.
        tids: threads by their numbers; each leaves when another task gets its number. It stays the
            caller's. None: there are none.

    Raises:
        NotSupportedError: the kernel does not show its types (CONFIG_DEBUG_INFO_BTF), which
            programs at `tp_btf` need (Linux 5.5).
        KernelError: the kernel refused.
    """

    def __init__(
        self,
        tgids: Map,
        *,
        command_pid: int = 0,
        namespace: tuple[int, int] = (0, 0),
        name: str | None = None,
        children: bool = True,
        tids: Map | None = None,
    ) -> None:
        device, inode = namespace
        spec = (
            objects.spec("process_tree")
            .set(command_tgid=command_pid, pid_namespace_dev=device, pid_namespace_ino=inode)
            .set(has_children=children, has_tids=tids is not None)
            .resize(tgids=tgids.info.max_entries)
        )
        maps = {"tgids": tgids}
        if tids is not None:
            most = tids.info.max_entries
            spec = spec.resize(tids=most, numbers=most)
            maps["tids"] = tids
        numbers_threads = tids is not None and inode
        more = ["number_threads"] if numbers_threads else []
        if name is not None:
            spec = spec.set(own_tgid=os.getpid(), has_name=True, wanted_name=encode_name(name))
            more.append("on_rename")
        spec = spec.only("on_newtask", "on_exec", "on_free", *more)
        with ExitStack() as undo:
            self._object = undo.enter_context(load(spec, maps=maps))
            links = self._object.attach()
            if numbers_threads:
                from purebpf.loader.attach.iterator import IteratorLink

                for link in links:
                    if isinstance(link, IteratorLink):
                        link.read()
            if name is not None:
                _enter_existing(tgids, name)
            undo.pop_all()

    @property
    def missed(self) -> int:
        """Children that could not be entered: the map was full, or busy."""
        return int(self._object.maps["tree_stats"][0].missed)

    def close(self) -> None:
        """Follow no longer; again is harmless."""
        self._object.close()


def follow(
    whose: TaskFilter, maps: Mapping[str, Map], owned: ExitStack, *, tree: bool = False
) -> ProcessTree | None:
    """Keep `tgids` and `tids` of a program that was loaded from `whose.apply()`, until `owned`
    closes it.

    It follows the command of `whose.command_pid`, processes with the name `whose.comm`, and with
    `tree` the children of `whose.pids`. Without any of these it returns None, and only takes
    processes of `whose.pids` and threads of `whose.tids` out of the maps when they end.

    Raises:
        NotSupportedError, KernelError: as `ProcessTree`.
    """
    is_asked = bool(whose.command_pid or tree or whose.comm is not None)
    if not is_asked and not ((whose.pids or whose.tids) and is_supported()):
        return None  # without the kernel's types, processes and threads that end stay
    processes = ProcessTree(
        maps["tgids"],
        command_pid=whose.command_pid,
        namespace=whose.namespace,
        name=whose.comm,
        children=is_asked and (whose.comm is None or whose.tree),
        tids=maps["tids"] if whose.tids else None,
    )
    owned.enter_context(processes)
    _forget_ended(whose, maps)
    return processes if is_asked else None


def _forget_ended(whose: TaskFilter, maps: Mapping[str, Map]) -> None:
    """Take processes and threads out of the maps that ended before a program saw it: others may
    have their numbers.
    """
    for task, ticks in whose.started.items():
        if proc.start_ticks(task) != ticks:
            for kind in maps.keys() & {"tgids", "tids"}:
                maps[kind].pop(task, None)


def encode_name(name: str) -> bytes:
    """Return the 16 bytes that the kernel keeps of a name."""
    return os.fsencode(name)[:_NAME_BYTES].ljust(_NAME_BYTES + 1, b"\0")


def processes_called(name: str) -> Iterator[int]:
    """Yield the processes that have a name now, as in /proc/PID/comm, without this process."""
    for pid in proc.pids():
        if pid != os.getpid() and _is_called(pid, name):
            yield pid


def _is_called(pid: int, name: str) -> bool:
    try:
        comm = proc.comm(pid)
    except KernelError:  # not ours to read
        return False
    return comm is not None and encode_name(comm) == encode_name(name)


def _enter_existing(tgids: Map, name: str) -> None:
    """Enter the processes of a name, while the programs watch: they may change it meanwhile."""
    for pid in processes_called(name):
        while pid not in tgids and _is_called(pid, name):
            tgids[pid] = 1
            if not _is_called(pid, name):
                tgids.pop(pid, None)
