"""`FileSystemWatch`: the use of local file systems."""

from __future__ import annotations

import os

from purebpf.findings.facts import FileSystem
from purebpf.syscall import proc

__all__ = ["FileSystemWatch"]

_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs"})
"""Kinds that answer at once: a file server that is gone would stop the measurement."""
_MOST = 200


class FileSystemWatch:
    """Reads the use of each file system that is mounted here at each `tick`."""

    def __init__(self) -> None:
        self._seen: dict[int, FileSystem] = {}

    def tick(self) -> None:
        """Take in the use of this moment; the first path of several to one file system counts."""
        ticked: set[int] = set()
        local = [(path, kind) for path, kind in proc.mounts() if kind in _LOCAL]
        for path, kind in local[:_MOST]:
            try:
                device = os.stat(path).st_dev
                if device in ticked:
                    continue
                use = os.statvfs(path)
            except OSError:
                continue
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
