"""Python frames put where the evaluation loop ran them, between the native frames of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from purebpf.runtimes.cpython.frames import PythonFrame

__all__ = ["Merged", "merge"]

Native = TypeVar("Native")


class Merged(NamedTuple, Generic[Native]):
    """A stack trace, innermost first.

    Attributes:
        frames: native and Python frames; the calls of the evaluation loop are removed.
        is_exact: each call of the loop had its Python frames. Otherwise one of the two is cut at
            its outermost side: frames without a counterpart are at the end.
    """

    frames: list[Native | PythonFrame]
    is_exact: bool


def merge(
    native: Sequence[Native], is_loop: Sequence[bool], python: Sequence[PythonFrame]
) -> Merged[Native]:
    """Both stack traces as one.

    Args:
        native: the native frames, innermost first.
        is_loop: for each of them, whether it is a call of the evaluation loop.
        python: the Python frames, innermost first; each call of the loop runs those up to one that
            `is_entry`.
    """
    calls = _split(python)
    loops = sum(is_loop)
    # A loop that was entered and has not linked its frame yet, or left it already: the innermost.
    is_between = loops == len(calls) + 1 and bool(is_loop) and is_loop[0]
    frames: list[Native | PythonFrame] = []
    for at, (frame, loop) in enumerate(zip(native, is_loop, strict=True)):
        if loop and calls and not (is_between and at == 0):
            frames += calls.pop(0)
        else:
            frames.append(frame)
    is_exact = is_between or loops == len(_split(python))
    return Merged([*frames, *(frame for call in calls for frame in call)], is_exact)


def _split(python: Sequence[PythonFrame]) -> list[list[PythonFrame]]:
    """The frames of each call of the loop, the innermost call first."""
    calls: list[list[PythonFrame]] = []
    is_over = True
    for frame in python:
        if is_over:
            calls.append([])
        calls[-1].append(frame)
        is_over = frame.is_entry
    return calls
