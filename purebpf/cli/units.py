"""Sizes with units that scale, in few columns; `results.model.units` has durations. Pure."""

from __future__ import annotations

__all__ = ["size_text"]


def size_text(size: int) -> str:
    """Bytes in at most four characters, such as `1.2k`; thousands, not 1024."""
    if size < 1000:  # noqa: PLR2004
        return str(size)
    number = float(size)
    for unit in "kMGTPE":
        number /= 1000
        if number < 9.95:  # noqa: PLR2004 - what rounds to two digits has none behind the point
            return f"{number:.1f}{unit}"
        if number < 999.5:  # noqa: PLR2004
            return f"{number:.0f}{unit}"
    raise AssertionError("the kernel counts in 64 bits")
