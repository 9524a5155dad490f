"""The purpose of a wait for a condition: room in a queue, a permit, a result. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from purebpf.findings.ownership import FrameLike, Program, short_name
from purebpf.late_pattern import compile_later

__all__ = ["purpose_of_condition"]

_LIBRARIES_THAT_WAIT = (
    (
        "barrier",
        compile_later(
            r"(__)?(pthread|gomp(_team)?)_barrier_wait|std::barrier.*wait|std::sync::barrier|"
            r"Barrier\.wait$"
        ),
    ),
    (
        "result",
        compile_later(
            r"std::(__atomic_futex_unsigned_base|__basic_future|__future_base)|Future\.result$"
        ),
    ),
    ("queue-full", compile_later(r".*Queue\.put$|.*[Cc]hannel<.*>::send")),
    (
        "permit",
        compile_later(
            r".*Semaphore\.(acquire|__enter__)$|.*counting_semaphore.*::.*acquire|"
            r".*__(atomic|platform)_semaphore.*::_M_(try_)?acquire|"
            r".*[Pp]ool\w*\.(_?get_?conn\w*|_do_get|acquire|borrow\w*|checkout|lease)$"
        ),
    ),
)
_FUNCTIONS_THAT_WAIT = tuple(
    (kind, compile_later(rf"(block .*in )?(.*(::|[._]))?({verbs})(_\w+)?(\(.*)?$"))
    for kind, verbs in (
        ("queue-full", "push|put|enqueue|offer"),
        ("permit", "acquire|borrow|checkout|check_out|lease|rent|(get|take|with)_?conn(ection)?"),
    )
)
"""Of libraries, and of programs themselves, which are named for what they do."""
_POOL_TAKES = compile_later(
    r"(?!.*(thread|worker|task|job|exec))\w*pool\w*(::|\.)"
    r"(take|get|pop|fetch|obtain|reserve|borrow|lease|acquire)\w*$",
    re.IGNORECASE,
)
"""Methods that take a member of a pool, as far as the pool has no threads or jobs."""
_WORKS_ON_JOBS = compile_later(
    r"(.*(::|\.))?(run|main|work|start|loop|\w*([lL]oop|[wW]orker|[fF]orever|[jJ]obs|[tT]asks))$"
)
"""Callers whose threads belong to the pool, and wait in it for something to do."""
_NEAR = 12
"""Frames inside of which a call of a queue or of a pool of permits leads to its wait."""


def purpose_of_condition(kind: str, program: Program, user: Sequence[FrameLike]) -> str:
    """The purpose of a wait, by the library's call or by the own function that waits.

    Takers of jobs wait likewise, but their functions are named otherwise.
    """
    for at, frame in enumerate(user[:_NEAR]):
        is_own = program.owns(frame)
        for purpose, pattern in _FUNCTIONS_THAT_WAIT if is_own else _LIBRARIES_THAT_WAIT:
            if pattern.match(frame.name):
                return purpose
        if is_own:
            return "permit" if _takes_member(program, user[at:]) else kind
    return kind


def _takes_member(program: Program, user: Sequence[FrameLike]) -> bool:
    """Return True for own code that asks its pool for a member; `user` begins in the pool."""
    own = [short_name(frame.name) for frame in user if program.owns(frame)]
    is_called = len(own) > 1 and own[1].rpartition("::")[0] != own[0].rpartition("::")[0]
    return is_called and bool(_POOL_TAKES.match(own[0])) and not _WORKS_ON_JOBS.match(own[1])
