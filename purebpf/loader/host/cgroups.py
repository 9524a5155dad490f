"""Cgroups of version 2: where they are, opened, and by the numbers that the kernel gives them."""

from __future__ import annotations

import os

from purebpf.errors import KernelError
from purebpf.syscall import proc
from purebpf.syscall.descriptor import Descriptor, directory

_UNLIMITED = 1 << 60
"""Version 1 writes the largest number of pages where there is no limit."""

__all__ = ["memory_limit", "open_cgroup_directory", "paths_by_id", "root", "where"]


def root() -> str | None:
    """Return the mount point of the cgroup2 file system; None: not mounted."""
    return next((path for path, kind in proc.mounts() if kind == "cgroup2"), None)


def where() -> str:
    """The same in words, for errors."""
    mounts = [path for path, kind in proc.mounts() if kind == "cgroup2"]
    if not mounts:
        return "no cgroup2 file system is mounted"
    return f"the cgroup2 file system is mounted at {', '.join(mounts)}"


def open_cgroup_directory(path: str) -> Descriptor:
    """A descriptor of a cgroup's directory, the caller's to close.

    Raises:
        KernelError: ENOENT, ENOTDIR: there is none.
    """
    try:
        return directory(path)
    except OSError as error:
        raise KernelError(f"open({path})", error.errno or 0, "the cgroup", why=where()) from None


def memory_limit() -> tuple[str, int] | None:
    """The file and value (bytes) of the tightest memory limit on this process; None: no limit.

    Of both versions of cgroups: memory.max, or memory.limit_in_bytes of the memory controller.
    """
    limits: list[tuple[int, str]] = []
    mounts = proc.mounts()
    for line in (proc.cgroup("self") or "").split("\n"):
        _, controllers, path = (*line.split(":", 2), "", "", "")[:3]
        for mount, kind in mounts:
            if not controllers and kind == "cgroup2":
                name = "memory.max"
            elif "memory" in controllers.split(",") and mount.endswith("/memory"):
                name = "memory.limit_in_bytes"
            else:
                continue
            folder = path.strip("/")
            while True:
                file = os.path.join(mount, folder, name)
                limits += [(limit, file) for limit in _limit_in(file)]
                if not folder:
                    break
                folder = os.path.dirname(folder)
    return min(((file, limit) for limit, file in limits), key=lambda found: found[1], default=None)


def _limit_in(file: str) -> list[int]:
    try:
        with open(file, encoding="ascii") as opened:
            text = opened.read().strip()
    except OSError:
        return []
    return [int(text)] if text.isdecimal() and int(text) < _UNLIMITED else []


def paths_by_id() -> dict[int, str]:
    """The cgroups that exist now: id (the inode of the directory) to path, "/" for the root."""
    top = root()
    if top is None:
        return {}
    paths = {os.stat(top).st_ino: "/"}
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # removed since
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                paths[entry.inode()] = entry.path.removeprefix(top)
                folders.append(entry.path)
    return paths
