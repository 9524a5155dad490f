"""`UnsafeReturnError`: the refusal of a return probe."""

from __future__ import annotations

from purebpf.errors import NotSupportedError

__all__ = ["UnsafeReturnError"]


class UnsafeReturnError(NotSupportedError):
    """A return probe might end the program, and the function's returns are not all known."""
