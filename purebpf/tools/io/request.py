"""The requests of block devices to measure, for a command line or a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["GROUPINGS", "IoOptions"]

GROUPINGS = ("device", "process", "file")
"""enum grouping of bpf_src/io.bpf.c."""


class IoOptions(TargetOptions, RunOptions):
    """The target, and which of its requests. Empty tuples and None mean: no restriction.

    `by` is one of GROUPINGS, with room for so many `rows`. Requests of `slower_ms` or more are
    separate events; None: no request is. `device` is a name as in /dev, or MAJOR:MINOR.
    `duration_s` None: until a signal, or until `command` or all of `pids` end. `tree`: children of
    `pids` also count.
    """

    by: str = "device"
    rows: int = 1024
    slower_ms: float | None = None
    device: str | None = None
    only_failed: bool = False
