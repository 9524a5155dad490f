"""The purpose of a wait for a condition: room in a queue, a permit, a result. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.findings.ownership import FrameLike, Program
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
_NEAR = 12
"""Frames inside of which a call of a queue or of a pool of permits leads to its wait."""


def purpose_of_condition(kind: str, program: Program, user: Sequence[FrameLike]) -> str:
    """The purpose of a wait, by the library's call or by the own function that waits.

    Takers of jobs wait likewise, but their functions are named otherwise.
    """
    for frame in user[:_NEAR]:
        is_own = program.owns(frame)
        for purpose, pattern in _FUNCTIONS_THAT_WAIT if is_own else _LIBRARIES_THAT_WAIT:
            if pattern.match(frame.name):
                return purpose
        if is_own:
            break
    return kind
