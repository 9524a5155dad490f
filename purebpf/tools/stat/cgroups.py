"""Cgroups by patterns of their paths, and where each is counted."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from purebpf.loader.host import cgroups
from purebpf.measure.perf_targets import EventPlace
from purebpf.measure.targets import NoSuchTargetError

__all__ = ["cgroup_name", "cgroup_places"]


def cgroup_places(patterns: Iterable[str], on: Iterable[int]) -> list[EventPlace]:
    """Every cgroup that fits a pattern, by path, on each of these CPUs.

    Args:
        patterns: of paths below the mount of cgroup2, at any depth: `system.slice/*.service`.
        on: CPUs.

    Raises:
        NoSuchTargetError: no cgroup fits one of the patterns.
    """
    top = cgroups.root() or ""
    paths = sorted(path.strip("/") for path in cgroups.paths_by_id().values())
    wanted: set[str] = set()
    for pattern in patterns:
        below = pattern.removeprefix(f"{top}/").strip("/")
        fits = [path for path in paths if fnmatchcase(path, below)]
        if not fits:
            raise NoSuchTargetError(f"no cgroup fits {pattern!r}: {cgroups.where()}")
        wanted.update(fits)
    where = list(on)
    return [EventPlace(-1, cpu, f"{top}/{path}") for path in sorted(wanted) for cpu in where]


def cgroup_name(path: str) -> str:
    """The path below the mount, "/" for the root."""
    return path.removeprefix(cgroups.root() or "").strip("/") or "/"
