"""Histograms: the labels of buckets, and bars."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from purebpf.script.types import Type
from purebpf.tuples import NamedTuple

__all__ = ["Bucket", "list_buckets", "share_of", "show_histogram"]

_BAR = 52
_UNITS = ("", "K", "M", "G", "T", "P", "E")


class Bucket(NamedTuple):
    """A bucket: its smallest and largest value (None: no limit), its label, how many values."""

    low: int | None
    high: int | None
    label: str
    number: int


def list_buckets(type_: Type, counts: Mapping[int, int]) -> list[Bucket]:
    """Return the buckets from the first to the last that counted something."""
    filled = [index for index, count in counts.items() if count]
    if not filled:
        return []
    describe = _power if type_.kind == "hist" else _linear
    return [
        Bucket(*describe(type_, index), counts.get(index, 0))
        for index in range(min(filled), max(filled) + 1)
    ]


def show_histogram(buckets: Sequence[Bucket]) -> str:
    """Return a line with a bar for each bucket; the largest has 52 characters."""
    most = max((bucket.number for bucket in buckets), default=1)
    return "".join(
        f"{bucket.label:<16}{bucket.number:>8} "
        f"|{'@' * share_of(bucket.number, most, _BAR):<{_BAR}}|\n"
        for bucket in buckets
    )


def share_of(part: int, whole: int, length: int) -> int:
    """Return a part of a length in characters, computed like C's float."""
    (share,) = struct.unpack("f", struct.pack("f", part / whole))
    return int(share * length)


def _power(type_: Type, index: int) -> tuple[int | None, int | None, str]:
    bits = type_.numbers[0]
    if index == 0:
        return None, -1, "(..., 0)"
    number = index - 1
    if number < 2 << bits:
        return number, number, f"[{number}]"
    low, high = _edge(number, bits), _edge(number + 1, bits)
    return low, high - 1, f"[{_short(number, bits)}, {_short(number + 1, bits)})"


def _edge(number: int, bits: int) -> int:
    power = (number >> bits) - 1
    return ((1 << bits) + (number & ((1 << bits) - 1))) << power


def _short(number: int, bits: int) -> str:
    power = (number >> bits) - 1
    mantissa = (1 << bits) + (number & ((1 << bits) - 1))
    return f"{mantissa << power % 10}{_UNITS[power // 10]}"


def _linear(type_: Type, index: int) -> tuple[int | None, int | None, str]:
    low, high, step = type_.numbers
    begin = low + (index - 1) * step
    if index == 0:
        return None, low - 1, f"(..., {_scale(low, step)})"
    if begin >= high:
        return high, None, f"[{_scale(high, step)}, ...)"
    if step == 1:
        return begin, begin, f"[{begin}]"
    end = begin + step
    return begin, end - 1, f"[{_scale(begin, step)}, {_scale(end, step)})"


def _scale(number: int, step: int) -> str:
    if step % 1024 or not number:
        return str(number)
    return f"{number >> 20}M" if number % (1 << 20) == 0 else f"{number >> 10}K"
