"""Durations and sizes with units that scale, in few columns. Pure."""

from __future__ import annotations

__all__ = ["duration_text", "size_text"]

_UNITS = ((1000, 999.5, "us"), (1_000_000, 999.5, "ms"), (1_000_000_000, 59.95, "s"))
"""Of durations: nanoseconds, and from how many of them on another unit is better."""


def duration_text(duration_ns: int) -> str:
    """A duration in three digits: `752ns`, `12.0us`, `1.24ms`, `3.50s`, `1m35s`, `2h05m`, `3d07h`.

    Six characters at most, if it is below 100 days.
    """
    if duration_ns < 1000:  # noqa: PLR2004
        return f"{duration_ns}ns"
    for unit_ns, limit, unit in _UNITS:
        if duration_ns < limit * unit_ns:
            return f"{duration_ns / unit_ns:#.3g}".removesuffix(".") + unit
    minutes, seconds = divmod(round(duration_ns / 1e9), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds:02}s"


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
