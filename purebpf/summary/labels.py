"""The names of groups: threads and processes by comm, cgroups by path."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from purebpf.kernel.map import Map
from purebpf.summary.table import Label
from purebpf.syscall import proc

__all__ = ["cgroup_root", "labels", "paths_by_id"]

_NUMBER = 0xFFFFFFFF


def labels(mode: str, maps: Mapping[str, Map]) -> Callable[[int], Label]:
    """What makes a label of a group's key, as bpf_src/summary.bpf.c has them.

    Raises:
        KernelError: the names could not be read.
    """
    if mode == "cgroup":
        paths = paths_by_id()
        return lambda group: Label(group, paths.get(group, ""))
    if mode == "total":
        return lambda _: Label()
    comms = {group: name.comm for group, name in maps["names"].items()}
    return lambda group: Label(group & _NUMBER, comms.get(group, ""))


def cgroup_root() -> str | None:
    """Where the cgroup2 file system is mounted; None: nowhere."""
    return next((path for path, kind in proc.mounts() if kind == "cgroup2"), None)


def paths_by_id() -> dict[int, str]:
    """The cgroups that exist now: id (the inode of the directory) to path, "/" for the root."""
    root = cgroup_root()
    if root is None:
        return {}
    found = {os.stat(root).st_ino: "/"}
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # removed meanwhile
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found[entry.inode()] = entry.path.removeprefix(root)
                folders.append(entry.path)
    return found
