"""The interface through which an unwinder leaves the frames of generated code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from purebpf.tuples import NamedTuple

__all__ = ["Caller", "FrameState", "GeneratedCode"]


class FrameState(NamedTuple):
    """A frame in generated code.

    Attributes:
        number: its place in the trace, from 0 for the innermost.
        pc: the address of the next instruction (`is_exact`), or the return address.
        is_exact: whether the frame called nothing: the innermost one, or one that a signal
            interrupted.
        registers: by DWARF's numbers; None: not known.
        word: reads a word of the stack; raises OutsideError.
    """

    number: int
    pc: int
    is_exact: bool
    registers: Sequence[int | None]
    word: Callable[[int], int]


class Caller(NamedTuple):
    """The caller of a frame: its return address, stack pointer and frame pointer.

    Attributes:
        is_guess: whether the frame may not have been made yet, so that the caller is another one's.
    """

    pc: int
    sp: int
    fp: int
    is_guess: bool = False


class GeneratedCode(Protocol):
    """Code that a runtime of the process has generated, in frames of its own form."""

    def has(self, address: int) -> bool:
        """Return True if an address is in such code."""

    def leave(self, frame: FrameState) -> Caller | None:
        """Return the caller of a frame; None: it is not known, and the trace is cut here.

        Raises:
            OutsideError: the frame is outside of the copied stack.
        """
