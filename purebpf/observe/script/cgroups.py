"""Paths and numbers of cgroups."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator

__all__ = ["cgroup_id", "cgroup_paths"]

_MOUNTS = "/proc/self/mounts"
_ROOT = "/sys/fs/cgroup"


def cgroup_id(path: str) -> int | None:
    """Return the number of a cgroup: the inode of its folder."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def cgroup_paths(number: int, pattern: str = "") -> str:
    """Return `hierarchy:path` of a cgroup, with `;` between; the unified one is "unified".

    Args:
        number: of the cgroup.
        pattern: of the names of hierarchies, "" for all.
    """
    found = [
        f"{name}:{path}"
        for name, mount in _hierarchies()
        if fnmatch.fnmatchcase(name, pattern or "*")
        for path in _find(mount, number)
    ]
    return ";".join(found)


def _hierarchies() -> Iterator[tuple[str, str]]:
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as lines:
            mounts = [line.split() for line in lines]
    except OSError:
        return
    for _, mount, kind, *_ in mounts:
        if kind == "cgroup2":
            yield "unified", mount
        elif kind == "cgroup" and mount.startswith(_ROOT):
            yield mount.rpartition("/")[2], mount


def _find(mount: str, number: int) -> Iterator[str]:
    for folder, _, _ in os.walk(mount):
        try:
            if os.stat(folder).st_ino == number:
                yield folder.removeprefix(mount) or "/"
                return
        except OSError:
            continue
