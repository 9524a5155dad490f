"""Samples of a JVM until there are enough, judged stack by stack."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

from purebpf.results.model.profile import Row
from purebpf.symbols.frame import Frame, Reason
from purebpf.tools.profile import ProfileOptions, Profiler

__all__ = ["SAMPLES", "Judged", "judge", "named_frames"]

SAMPLES = int(os.environ.get("PUREBPF_RACE_SAMPLES", "10000"))
_PATIENCE_S = 600
"""A machine that runs nothing else needs two minutes."""


class Judged(NamedTuple):
    """Samples of a JVM.

    Attributes:
        total: all of them.
        named: those with functions of the program's own.
        wrong: those that the program cannot have.
        problems: stacks of these.
    """

    total: int
    named: int
    wrong: int
    problems: list[str]


def named_frames(row: Row) -> list[Frame]:
    """The frames of a user stack that have names, innermost first."""
    return [frame for frame in row.user or () if isinstance(frame, Frame)]


def _between_unnamed(row: Row) -> list[list[Frame]]:
    """The frames that have names, apart where a method between them has none: that is told."""
    parts: list[list[Frame]] = [[]]
    for frame in row.user or ():
        if isinstance(frame, Frame):
            parts[-1].append(frame)
        elif frame.reason is Reason.JAVA_UNNAMED:
            parts.append([])
    return parts


def judge(
    process: subprocess.Popen[str],
    is_own: Callable[[Frame], object],
    wrong: Callable[[list[Frame]], str],
) -> Judged:
    """Sample a process until there are `SAMPLES`, or it is late.

    Args:
        process: a JVM that goes on.
        is_own: true for a frame of the program's.
        wrong: says why the frames of a stack cannot be; "": they can.
    """
    named = total = mistaken = 0
    problems: list[str] = []
    until = time.monotonic() + _PATIENCE_S
    while total < SAMPLES and time.monotonic() < until:
        options = ProfileOptions(
            pids=(process.pid,), frequency=499, duration_s=20, python_lines=True
        )
        with Profiler(options) as profiler:
            profiler.wait()
            profile = profiler.stop()
        for row in profile.rows():
            frames = named_frames(row)
            total += row.weight
            named += row.weight * any(map(is_own, frames))
            if problem := next(filter(None, map(wrong, _between_unnamed(row))), ""):
                problems.append(problem)
                mistaken += row.weight
    assert process.poll() is None
    return Judged(total, named, mistaken, problems)
