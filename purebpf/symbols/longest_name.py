"""The limit on the length of a function's name: another user's file may hold one of any length."""

from __future__ import annotations

__all__ = ["LONGEST_NAME", "ends_at", "shorten"]

LONGEST_NAME = 4096
"""Characters of a name that are kept. The longest names of C++ and Rust are a few thousand long."""

_CUT = "…"


def ends_at(text: bytes | bytearray, start: int, stop: bytes = b"\0") -> int:
    """Return the end of a name; at most one byte above the limit is read.

    Args:
        text: a table of names.
        start: where the name begins.
        stop: the byte that ends it.
    """
    limit = start + LONGEST_NAME + 1
    end = text.find(stop, start, limit)
    return end if end >= 0 else min(limit, len(text))


def shorten(name: str) -> str:
    """The name, or its beginning and "…"."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + _CUT
