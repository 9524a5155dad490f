"""The measurement of `purebpf types`."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FREQUENCY", "MAP_ENTRIES", "TypesOptions"]

FREQUENCY = 999
MAP_ENTRIES = 65536


class TypesOptions(NamedTuple):
    """A frozen request: the targets, the rate, and the end."""

    frequency: int = FREQUENCY
    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    tree: bool = False
    cpus: tuple[int, ...] = ()
    cgroup: str | None = None
    map_entries: int = MAP_ENTRIES
    duration_s: float | None = None
    command: tuple[str, ...] = ()
