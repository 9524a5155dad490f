"""`suggest`: similar names for a hint."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["suggest"]


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "similar: a, b", or "" if no known name is similar."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=3)
    return f"similar: {', '.join(close)}" if close else ""
