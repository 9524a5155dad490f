"""The functions that let go of a lock, which had it until then. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from purebpf.findings.facts import Activity
from purebpf.findings.places import sum_places
from purebpf.measure.activities import named_frames
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["released_in"]

_IN = ("mutex", "rwlock", "python lock")
"""Locks that the thread which has them lets go. A semaphore may be posted by anybody, and a thread
that runs with the GIL for long gives it to another one and takes it back."""


def released_in(
    kind: str, pid: int, stacks: Iterable[tuple[Sequence[Frame | Unknown], int]]
) -> tuple[str, ...]:
    """Return own functions of the thread that let go most often, the innermost first.

    Args:
        kind: one of `purebpf.tools.lock.request.USER_TYPES`.
        pid: the process.
        stacks: of the threads that let go, with the waits that ended by them.
    """
    if kind not in _IN:
        return ()
    activities = [
        Activity(pid, 0, "", "cpu", "R", float(waits), (), named_frames(tuple(stack)))
        for stack, waits in stacks
        if waits
    ]
    path = next((place.path for place in sum_places(activities)), ())
    return () if path and "!0x" in path[0] else path
