"""The requests of block devices to measure, for a command line or a program."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GROUPINGS", "IoOptions"]

GROUPINGS = ("device", "process", "file")
"""enum grouping of bpf_src/io.bpf.c."""


class IoOptions(NamedTuple):
    """The target, and which of its requests. Empty tuples and None mean: no restriction.

    `by` is one of GROUPINGS, with room for so many `rows`. Requests of `slower_ms` or more are
    separate events; None: no request is. `device` is a name as in /dev, or MAJOR:MINOR.
    `duration_s` None: until a signal, or until `command` or all of `pids` end. `tree`: children of
    `pids` also count.
    """

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    cgroup: str | None = None
    tree: bool = False
    comm: str | None = None
    by: str = "device"
    rows: int = 1024
    slower_ms: float | None = None
    device: str | None = None
    only_failed: bool = False
    duration_s: float | None = None
    command: tuple[str, ...] = ()
