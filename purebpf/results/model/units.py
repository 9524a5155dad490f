"""Numbers in a unit in which they are short. Pure."""

from __future__ import annotations

__all__ = ["count_in_unit", "in_unit"]

_TIMES = ((1_000, "ns"), (1_000, "us"), (1_000, "ms"), (3_600, "s"), (24, "h"), (1 << 63, "d"))
"""How many of each unit the next one has."""
_COUNTS = "kMGTPE"
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


def _three_digits(value: float) -> str:
    whole = len(str(int(value)))
    text = f"{value:.{max(0, _DIGITS - whole)}f}"
    return text if len(text.replace(".", "")) <= _DIGITS else f"{value:.{max(0, 2 - whole)}f}"
