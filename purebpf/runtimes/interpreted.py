"""Frames of functions that a loop in C interprets, innermost first."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["MAX_FRAMES", "InterpretedFrame", "InterpretedStack"]

MAX_FRAMES = 10_000


class InterpretedFrame(NamedTuple):
    """A call of a function of Python or PHP.

    Attributes:
        name, file: of its code; the name is qualified, in Python from 3.11 on.
        line: of the instruction; 0: it has none.
        code: the address of the code object, or of the function.
        is_entry: C code called it: the evaluation loop begins here. Frames between two such share
            one native frame.
    """

    name: str
    file: str
    line: int
    code: int
    is_entry: bool


class InterpretedStack(NamedTuple):
    """Frames, and why there are no more of them: "" for a whole stack."""

    frames: tuple[InterpretedFrame, ...]
    problem: str
