"""Durations and sizes with units that scale, in few columns. Pure."""

from __future__ import annotations

__all__ = ["duration_text", "size_text"]

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
_DAY_S = 86400


def duration_text(duration_ns: int) -> str:
    """A duration in at most six characters, such as `1.23ms`, if it is below 1000 days."""
    seconds = duration_ns // 1_000_000_000
    if seconds >= _DAY_S:
        return f"{seconds / _DAY_S:.1f}d"
    for size, unit in _UNITS:
        if duration_ns >= size:
            number = duration_ns / size
            digits = 2 if number < 9.995 else 1 if number < 99.95 else 0  # noqa: PLR2004
            return f"{number:.{digits}f}{unit}"
    return f"{duration_ns}ns"


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
