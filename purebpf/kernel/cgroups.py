"""Cgroups by the numbers that the kernel gives them."""

from __future__ import annotations

import os

from purebpf.syscall import proc

__all__ = ["paths_by_id", "root"]


def root() -> str | None:
    """Where the cgroup2 file system is mounted; None: nowhere."""
    return next((path for path, kind in proc.mounts() if kind == "cgroup2"), None)


def paths_by_id() -> dict[int, str]:
    """The cgroups that exist now: id (the inode of the directory) to path, "/" for the root."""
    top = root()
    if top is None:
        return {}
    found = {os.stat(top).st_ino: "/"}
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # removed meanwhile
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found[entry.inode()] = entry.path.removeprefix(top)
                folders.append(entry.path)
    return found
