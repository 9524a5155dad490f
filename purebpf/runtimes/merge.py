"""Python frames put where the evaluation loop ran them, between the native frames of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import groupby
from typing import Generic, TypeVar

from purebpf.runtimes.interpreted import InterpretedFrame
from purebpf.tuples import NamedTuple

__all__ = ["Fit", "Home", "Merged", "merge"]

Native = TypeVar("Native")


class Fit(Enum):
    """The fit of native and Python frames."""

    EXACT = 1
    """Each call of the loop has its Python frames."""
    SWITCHED = 2
    """The Python frames begin on a stack that a library switched to; native frames end there."""
    OUTSIDE = 3
    """The native frames are cut; the Python frames that are left called them."""
    UNKNOWN = 4
    """Their order is not known: calls of the loop without Python frames, or the other way round."""


class Home(Enum):
    """The kind of code of a native frame."""

    NONE = 0
    """It never is a Python function."""
    INTERPRETER = 1
    """Of the interpreter's file; no Python function, but its API or its evaluation loop."""
    COMPILED = 2
    """Perhaps a Python function that was compiled, as Nuitka does."""


class Merged(NamedTuple, Generic[Native]):
    """A stack trace, innermost first.

    Attributes:
        frames: native and Python frames; the calls of the evaluation loop are removed.
        fit: how both belong together.
        is_compiled: whether calls without the evaluation loop have their place by `Home`.
    """

    frames: list[Native | InterpretedFrame]
    fit: Fit
    is_compiled: bool = False


def merge(
    native: Sequence[Native],
    is_loop: Sequence[bool],
    python: Sequence[InterpretedFrame],
    *,
    is_switch: Sequence[bool] = (),
    is_whole: bool = False,
    homes: Sequence[Home] = (),
    may_precede: bool = False,
    leaving: int = 0,
) -> Merged[Native]:
    """Merge both stack traces.

    Args:
        native: the native frames, innermost first.
        is_loop: for each of them, whether it is a call of the evaluation loop.
        python: the Python frames, innermost first; each call of the loop runs those up to one that
            `is_entry`.
        is_switch: for each native frame, whether it belongs to a library that switches stacks, as
            greenlet does: calls beyond may be of another one.
        is_whole: whether the native frames reach the first one of their thread.
        homes: the kind of each native frame, for functions that have Python frames and no call of
            the loop.
        may_precede: whether the innermost function is linked before its call of the loop, and
            after it, as PHP does.
        leaving: how many native frames belong to a function that the loop calls after it has left
            its Python function.
    """
    calls = _split(python)
    end = _find_base(is_loop, is_switch, len(calls), leaving) if calls and any(is_switch) else None
    if end is not None:
        return Merged(_pair(native[:end], is_loop[:end], calls, leaving), Fit.SWITCHED)
    loops = sum(is_loop)
    is_between = _is_between(is_loop, len(calls), leaving)
    if loops == len(calls) or (is_between and not any(is_switch)):
        return Merged(_pair(native, is_loop, calls, leaving), Fit.EXACT)
    if may_precede and is_whole and loops == len(calls) - 1:
        return Merged([*calls[0], *_pair(native, is_loop, calls[1:])], Fit.EXACT)
    if loops > len(calls):
        return Merged(_pair(native, is_loop, calls), Fit.UNKNOWN)
    if not is_whole:
        return Merged(_pair(native, is_loop, calls), Fit.OUTSIDE)
    place = None if any(is_switch) else _find_only_run(is_loop, homes)
    others = [frame for frame, loop in zip(native, is_loop, strict=True) if not loop]
    if place is None:
        return Merged([*python, *others], Fit.UNKNOWN)
    return Merged([*others[:place], *python, *others[place:]], Fit.EXACT, is_compiled=True)


def _pair(
    native: Sequence[Native],
    is_loop: Sequence[bool],
    calls: Sequence[list[InterpretedFrame]],
    leaving: int = 0,
) -> list[Native | InterpretedFrame]:
    """Replace calls of the loop by their Python frames; the remaining frames come at the end."""
    is_between = _is_between(is_loop, len(calls), leaving)
    left = list(calls)
    frames: list[Native | InterpretedFrame] = []
    for at, (frame, loop) in enumerate(zip(native, is_loop, strict=True)):
        if loop and left and not (is_between and at == leaving):
            frames += left.pop(0)
        else:
            frames.append(frame)
    return [*frames, *(frame for call in left for frame in call)]


def _is_between(is_loop: Sequence[bool], calls: int, leaving: int) -> bool:
    """Return True if the innermost loop has not linked its frame yet, or has left it already."""
    return sum(is_loop) == calls + 1 and leaving < len(is_loop) and is_loop[leaving]


def _find_base(
    is_loop: Sequence[bool], is_switch: Sequence[bool], calls: int, leaving: int
) -> int | None:
    """Find the native frame at which a stack was switched to that has so many calls of the loop."""
    for end, (switch, before) in enumerate(zip(is_switch, (False, *is_switch), strict=False)):
        inside = is_loop[:end]
        if switch and not before and (sum(inside) == calls or _is_between(inside, calls, leaving)):
            return end
    return None


def _find_only_run(is_loop: Sequence[bool], homes: Sequence[Home]) -> int | None:
    """Find the first native frame of the only run of frames that may be Python functions.

    Frames of the interpreter alone, called by a library, are no such run.
    """
    places = []
    entries = enumerate(zip(homes, is_loop, strict=False))
    for is_home, run in groupby(entries, lambda entry: entry[1][0] is not Home.NONE):
        frames = list(run)
        if is_home and any(home is Home.COMPILED or loop for _, (home, loop) in frames):
            places.append(frames[0][0])
    return places[0] if len(places) == 1 else None


def _split(python: Sequence[InterpretedFrame]) -> list[list[InterpretedFrame]]:
    """The frames of each call of the loop, the innermost call first."""
    calls: list[list[InterpretedFrame]] = []
    is_over = True
    for frame in python:
        if is_over:
            calls.append([])
        calls[-1].append(frame)
        is_over = frame.is_entry
    return calls
