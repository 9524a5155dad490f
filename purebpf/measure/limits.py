"""Limits of this process that a big or a busy machine would run into."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

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
def raised_priority(at_most_s: float | None = None) -> Iterator[None]:
    """A context in which this thread runs before others that want the CPU, if it may.

    Records that are not read in time are lost, and on a busy machine a process with the usual nice
    value gets a fraction of a CPU. A process that was started with another nice value keeps it.
    Needs CAP_SYS_NICE.

    Args:
        at_most_s: seconds of CPU time after which it runs like others again: in the main thread of
            a process that uses neither SIGPROF nor its timer; elsewhere it does not rise. None:
            until the end of the context.
    """
    with ExitStack() as stack:
        if os.getpriority(os.PRIO_PROCESS, 0) == 0 and (at_most_s is None or _is_timer_free()):
            with suppress(OSError, ValueError):  # EACCES; not in the main thread
                if at_most_s is not None:
                    _lower_after(at_most_s, stack)
                os.setpriority(os.PRIO_PROCESS, 0, NICE)  # of the thread: NOTES in setpriority(2)
                stack.callback(_lower)
        yield


def _lower(*_: object) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def _is_timer_free() -> bool:
    """Return True if nothing, like a profiler of Python programs, uses the timer of CPU time."""
    is_idle = signal.getitimer(signal.ITIMER_PROF)[0] == 0
    return is_idle and signal.getsignal(signal.SIGPROF) is signal.SIG_DFL


def _lower_after(seconds: float, stack: ExitStack) -> None:
    """Lower the priority after so much CPU time, unless the stack ends before.

    Raises:
        ValueError: this is not the main thread.
    """
    signal.signal(signal.SIGPROF, _lower)
    stack.callback(signal.signal, signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    stack.callback(signal.setitimer, signal.ITIMER_PROF, 0)
