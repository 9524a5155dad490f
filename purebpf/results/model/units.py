"""Numbers in a unit that makes them short. Pure."""

from __future__ import annotations

__all__ = ["bytes_in_unit", "count_in_unit", "in_unit", "weight_in_unit"]

_TIMES = ((1_000, "ns"), (1_000, "us"), (1_000, "ms"), (3_600, "s"), (24, "h"), (1 << 63, "d"))
"""How many of each unit the next one has."""
_COUNTS = "kMGTPE"
_BYTES = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
_DIGITS = 3


def in_unit(time_ns: float) -> str:
    """`1.23 ms`: a duration with three digits, in at most seven columns below 270 years."""
    value = float(time_ns)
    for number, (size, unit) in enumerate(_TIMES):
        if float(_three_digits(value)) < size or number == len(_TIMES) - 1:
            text = f"{value:.0f}" if unit == "ns" else _three_digits(value)
            return f"{text} {unit}"
        value /= size
    raise AssertionError(time_ns)


def count_in_unit(count: int, digits: int = 8) -> str:
    """The number, exact if it has at most `digits` digits, else as `123 M`."""
    if len(str(count)) <= digits:
        return str(count)
    value = float(count)
    for unit in _COUNTS:
        value /= 1000
        if float(_three_digits(value)) < 1000:
            return f"{_three_digits(value)} {unit}"
    return f"{count:.2e}"


def bytes_in_unit(size: int) -> str:
    """`12.3 MB`, in powers of 1000; below 10 kB exact."""
    if size < 10_000:
        return f"{size:,} bytes"
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_BYTES) - 1:
        value /= 1000
        unit += 1
    digits = 0 if value >= 99.95 else 1
    return f"{value:.{digits}f} {_BYTES[unit]}"


def weight_in_unit(weight: int, unit: str) -> str:
    """A weight of a profile: `1.23 s` of "ns", `12.3 MB` of "bytes", `1 sample`."""
    if unit == "ns":
        return in_unit(weight)
    if unit == "bytes":
        return bytes_in_unit(weight)
    return f"{weight} {unit.removesuffix('s') if weight == 1 else unit}"


def _three_digits(value: float) -> str:
    whole = len(str(int(value)))
    text = f"{value:.{max(0, _DIGITS - whole)}f}"
    return text if len(text.replace(".", "")) <= _DIGITS else f"{value:.{max(0, 2 - whole)}f}"
