"""Limits of this process that a big or a busy machine would run into."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["NICE", "raise_open_files", "raised_priority"]

NICE = -10
"""Nine times the share of a process with the usual nice value (sched(7))."""


def raise_open_files() -> None:
    """Raise the soft RLIMIT_NOFILE to the hard one, which needs no privilege.

    Three descriptors a CPU go beyond the usual 1024 from some 330 CPUs on. A child that was forked
    before keeps its own limit: a command that uses select(2) does not see the greater numbers.
    """
    with suppress(OSError):  # seccomp: the limit stays, and is enough on most machines
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextmanager
def raised_priority() -> Iterator[None]:
    """A context in which this thread runs before others that want the CPU, if it may.

    Records that are not read in time are lost, and on a busy machine a process with the usual nice
    value gets a fraction of a CPU. A process that was started with another nice value keeps it.
    Needs CAP_SYS_NICE.
    """
    is_raised = False
    if os.getpriority(os.PRIO_PROCESS, 0) == 0:
        with suppress(OSError):  # EACCES
            os.setpriority(os.PRIO_PROCESS, 0, NICE)  # of the thread: NOTES in setpriority(2)
            is_raised = True
    try:
        yield
    finally:
        if is_raised:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
