"""The results of tseries(): values by interval, as a graph and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from purebpf.script.output.histogram import share_of
from purebpf.script.types import Type
from purebpf.tuples import NamedTuple

__all__ = ["TimeSeries", "combine_cpus", "cut_series", "list_intervals", "show_series"]

_WIDTH = 53
_LEFT = 21
_LARGEST = (1 << 64) - 1


class TimeSeries(NamedTuple):
    """Values of consecutive intervals; None in intervals without a value.

    Attributes:
        interval_ns: the length of an interval.
        points: the begin of each interval in ns since 1970, and its value.
        is_signed: True if values may be less than 0.
    """

    interval_ns: int
    points: tuple[tuple[int, int | None], ...]
    is_signed: bool = True


def combine_cpus(type_: Type, parts: Iterable[bytes]) -> tuple[int, int]:
    """Return the newest interval of an element, and its value over all CPUs.

    An element that zero() has emptied has the interval 0 and the value 0.
    """
    given = [
        (int.from_bytes(part[16:24], "little"),
         int.from_bytes(part[8:16], "little"),
         int.from_bytes(part[:8], "little", signed=type_.signed))
        for part in parts
    ]  # fmt: skip
    newest = max((interval for interval, _, _ in given), default=0)
    if not newest:
        return 0, 0
    chosen = [(second, value) for interval, second, value in given if interval == newest]
    values = [value for _, value in chosen]
    match type_.text:
        case "":
            return newest, max(chosen)[1]
        case "min" | "max":
            return newest, (min if type_.text == "min" else max)(values)
        case "sum":
            return newest, sum(values)
        case _:
            total, number = sum(values), sum(second for second, _ in chosen)
            average = abs(total) // number
            return newest, -average if total < 0 else average


def cut_series(
    type_: Type, by_key: Mapping[Any, Mapping[int, int]]
) -> list[tuple[Any, TimeSeries]]:
    """Return the series of all keys up to the newest interval, the key that ends last behind."""
    length, count = type_.numbers
    last = max((max(values, default=0) for values in by_key.values()), default=0)
    rows = []
    for key, values in sorted(by_key.items(), key=lambda row: max(row[1], default=0)):
        wanted = [number for number in values if number > last - count]
        first = min(wanted, default=last)
        if last < count - 1:  # all elements are empty
            first = last + 1
        points = [(number * length, values.get(number)) for number in range(first, last + 1)]
        rows.append((key, TimeSeries(length, tuple(points), type_.signed)))
    return rows


def list_intervals(series: TimeSeries) -> list[dict[str, object]]:
    """Return the intervals with a value as JSON has them."""
    return [
        {"interval_start": _clock(begin, "%Y-%m-%d %H:%M:%S", 9), "value": value}
        for begin, value in series.points
        if value is not None
    ]


def show_series(series: TimeSeries) -> str:
    """Return a graph: a line for each interval."""
    values = [value for _, value in series.points if value is not None]
    if not series.points:
        return "<no data>"
    low, high = min(values, default=0), max(values, default=0)
    if low == high:
        low = low - 1 if low > 0 or series.is_signed else 0
        high = min(high + 1, _LARGEST)
    unit, digits = _unit(series.interval_ns if len(series.points) > 1 else 0)
    title = f"hh:mm:ss{unit}".ljust(8 + bool(digits) + digits)
    margin = " " * (len(title) + 1)
    scale = f"{margin}{low:<{_LEFT}}{high:>{_WIDTH - _LEFT}}\n"
    line = "_" * (_WIDTH - 2)
    lines = [scale, f"{title} |{line}|\n"]
    for begin, value in series.points:
        lines.append(f"{_clock(begin, '%H:%M:%S', digits)} {_row(value, low, high)}\n")
    return "".join((*lines, f"{margin}v{line}v\n", scale))


def _row(value: int | None, low: int, high: int) -> str:
    line = list("|".ljust(_WIDTH - 1) + "|")
    if low < 0 < high:
        line[share_of(-low, high - low, _WIDTH)] = "."
    if value is None:
        return f"{''.join(line)} -"
    place = share_of(value - low, high - low, _WIDTH - 1)
    line[min(_WIDTH - 1, max(0, place))] = "*"
    return f"{''.join(line)} {value}"


def _unit(interval_ns: int) -> tuple[str, int]:
    """Return the unit of an interval, and the digits of a second that it needs."""
    for unit, length, digits in (("", 10**9, 0), (".ms", 10**6, 3), (".μs", 10**3, 6)):
        if interval_ns >= length:
            return unit, digits
    return ".ns", 9


def _clock(begin: int, layout: str, digits: int) -> str:
    seconds, rest = divmod(begin, 10**9)
    fraction = f".{rest:09}"[: digits + 1] if digits else ""
    return time.strftime(layout, time.localtime(min(seconds, 1 << 36))) + fraction
