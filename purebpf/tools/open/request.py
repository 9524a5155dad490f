"""A request to follow opened files, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["OpenOptions"]


class OpenOptions(TargetOptions, RunOptions):
    """The tasks and the calls to follow. Empty tuples and None mean: no restriction.

    `tree`: the children of `pids` as well. `failed`: only calls that failed; `errno`: with this
    error. `duration_s` None: until a signal, or until `command` or all of `pids` end.
    """

    failed: bool = False
    errno: int | None = None
