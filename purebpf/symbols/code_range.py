"""A range of addresses of code."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["CodeRange"]


class CodeRange(NamedTuple):
    """The addresses [start, end) of a function, or of a part of it that was moved away."""

    start: int
    end: int
