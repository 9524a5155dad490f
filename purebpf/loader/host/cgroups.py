"""Cgroups of version 2: where they are, opened, and by the numbers that the kernel gives them."""

from __future__ import annotations

import os

from purebpf.errors import KernelError
from purebpf.syscall import proc
from purebpf.syscall.descriptor import Descriptor, directory

__all__ = ["open_cgroup_directory", "paths_by_id", "root", "where"]


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
