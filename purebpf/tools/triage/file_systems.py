"""`FileSystemWatch`: the use of local file systems."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from purebpf.files.path_steps import open_place
from purebpf.findings.facts import FileSystem
from purebpf.syscall import proc

__all__ = ["FileSystemWatch"]

_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs"})
"""Kinds that answer at once: a file server that is gone would stop the measurement."""
_ANSWER = _LOCAL | {
    *("bpf", "cgroup", "cgroup2", "debugfs", "devpts", "devtmpfs", "exfat", "iso9660", "overlay"),
    *("proc", "ramfs", "rootfs", "squashfs", "sysfs", "tracefs", "vfat", "zfs"),
}
"""Kinds through which a path may lead to a local one."""
_MOST = 200


class FileSystemWatch:
    """Reads the use of each file system that is mounted here at each `tick`."""

    def __init__(self) -> None:
        self._seen: dict[int, FileSystem] = {}

    def tick(self) -> None:
        """Take in the use of this moment; the first path of several to one file system counts."""
        ticked: set[int] = set()
        for path, kind in list(_local(proc.mounts()))[:_MOST]:
            try:
                place = open_place(path, follow=False)
            except OSError:
                continue
            try:
                device = os.fstat(place).st_dev
                if device in ticked:
                    continue
                use = os.fstatvfs(place)
            except OSError:
                continue
            finally:
                os.close(place)
            if not use.f_blocks:
                continue
            ticked.add(device)
            known = self._seen.get(device)
            used = (use.f_blocks - use.f_bfree) * use.f_frsize
            free = use.f_bavail * use.f_frsize
            first, before = (known.path, known.used) if known else (path, ())
            self._seen[device] = FileSystem(first, kind, free, (*before, used))

    def finish(self) -> tuple[FileSystem, ...]:
        """The file systems whose use has changed."""
        return tuple(one for one in self._seen.values() if len(set(one.used)) > 1)


def _local(mounts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the local mounts whose paths do not lead through a mount that may not answer.

    A user can mount a file system of their own (FUSE) over the path of a local one, or above it.
    All paths lead through the root directory, whatever its kind.
    """
    mounts = list(mounts)
    doubtful = {path for path, kind in mounts if kind not in _ANSWER} - {"/"}
    for path, kind in mounts:
        if kind in _LOCAL and not doubtful.intersection(_steps(path)):
            yield path, kind


def _steps(path: str) -> Iterator[str]:
    """Yield a path, and the directories above it but the root."""
    while path.strip("/"):
        yield path
        path = path.rpartition("/")[0]
