"""A request to follow opened files, by a command line or by a program."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["OpenOptions"]


class OpenOptions(NamedTuple):
    """The tasks and the calls to follow. Empty tuples and None mean: no restriction.

    `tree`: the children of `pids` as well. `failed`: only calls that failed; `errno`: with this
    error. `duration_s` None: until a signal, or until `command` or all of `pids` end.
    """

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    cgroup: str | None = None
    tree: bool = False
    comm: str | None = None
    failed: bool = False
    errno: int | None = None
    duration_s: float | None = None
    command: tuple[str, ...] = ()
