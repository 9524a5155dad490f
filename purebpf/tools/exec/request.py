"""A request to follow processes, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["ExecOptions"]


class ExecOptions(TargetOptions, RunOptions):
    """The processes to follow, and their events. Empty tuples and None mean: no restriction.

    `tree`: the children of `pids` as well. `failed`: failures only: calls of execve(2) that were
    refused, and processes that ended with a status other than 0 or by a signal. `cpu_times`: the
    CPU time of each thread that ends, and refused calls of execve(2), too. `duration_s`
    None: until a signal, or until `command` or all of `pids` end.
    """

    failed: bool = False
    cpu_times: bool = False
