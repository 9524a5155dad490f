"""`Stay`: the time of a thread, or of a goroutine, in one place. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.findings.facts import Endpoint, StackFrame
from purebpf.findings.waiting import Side
from purebpf.tuples import NamedTuple

__all__ = ["Stay", "seconds_of", "threads_of"]


class Stay(NamedTuple):
    """The time of a thread in one place.

    Attributes:
        kind: "cpu", "queue", or the kind of the wait (`purebpf.findings.waiting`).
        seconds, times: how long, and how often.
        kernel, user: as of `Activity`; user frames end where the process was forked.
        own: the innermost function of the program's own; None: none is on the stack.
        is_work: it is time that somebody may wait for.
        is_called: a library's code called the own code that waits.
        is_open: it was not over at the end.
        endpoint, side: of a wait on a descriptor.
    """

    pid: int
    tid: int
    comm: str
    kind: str
    seconds: float
    times: int
    kernel: tuple[str, ...]
    user: tuple[StackFrame, ...]
    call: str
    argument: int
    own: StackFrame | None
    is_work: bool
    is_called: bool
    is_open: bool
    endpoint: Endpoint
    side: Side


def seconds_of(stays: Iterable[Stay]) -> float:
    """The sum of their seconds."""
    return sum(stay.seconds for stay in stays)


def threads_of(stays: Iterable[Stay]) -> int:
    """The number of different threads."""
    return len({stay.tid for stay in stays})
