"""The layouts of values, maps and histograms, byte for byte."""

from __future__ import annotations

import json

import pytest

from purebpf.script.format_string import split_format
from purebpf.script.map_info import MapInfo
from purebpf.script.output.histogram import list_buckets, show_histogram
from purebpf.script.output.map_rows import Stats
from purebpf.script.output.map_text import map_json, map_text
from purebpf.script.output.text import format_values, show, show_key
from purebpf.script.types import I64, Type

BAR = "@" * 52


def test_a_histogram_of_powers_has_one_row_for_each_and_none_is_left_out() -> None:
    buckets = list_buckets(Type("hist", 8, numbers=(0,)), {0: 1, 2: 4, 4: 2, 12: 1})
    lines = show_histogram(buckets).splitlines()
    assert lines[0] == f"(..., 0)               1 |{'@' * 13:<52}|"
    assert lines[1] == f"[0]                    0 |{'':<52}|"
    assert lines[2] == f"[1]                    4 |{BAR}|"
    assert lines[3] == f"[2, 4)                 0 |{'':<52}|"
    assert lines[4] == f"[4, 8)                 2 |{'@' * 26:<52}|"
    assert lines[-1] == f"[1K, 2K)               1 |{'@' * 13:<52}|"
    assert len(lines) == 13


def test_sub_buckets_divide_each_power() -> None:
    buckets = list_buckets(Type("hist", 8, numbers=(1,)), {5: 1, 6: 1})
    assert [bucket.label for bucket in buckets] == ["[4, 6)", "[6, 8)"]


def test_a_linear_histogram_has_open_ends() -> None:
    buckets = list_buckets(Type("lhist", 8, numbers=(0, 100, 10)), dict.fromkeys(range(12), 1))
    labels = [bucket.label for bucket in buckets]
    assert (labels[0], labels[1], labels[-1]) == ("(..., 0)", "[0, 10)", "[100, ...)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, "x", (2, 3)), "(1, x, (2, 3))"),
        ([1, 2], "[1,2]"),
        ({"a": 1, "b": "x"}, "{ .a = 1, .b = x }"),
        (True, "true"),
        (b"a\x01", "a\\x01"),
    ],
)
def test_values_are_shown(value: object, text: str) -> None:
    assert show(value) == text


def test_the_items_of_a_key_have_no_brackets() -> None:
    assert show_key((1, ("a", 2))) == "1, (a, 2)"


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("%d|%5d|%-5d|%05d", [1, 2, 3, -4], "1|    2|3    |-0004"),
        ("%x %#x %X %o", [255, 255, 255, 8], "ff 0xff FF 10"),
        ("%hhx %hx %x %lx", [0x123456789ABCDEF] * 4, "ef cdef 89abcdef 123456789abcdef"),
        ("%s %c %p %%", ["a", 65, 16], "a A 0x10 %"),
        ("%10s|%-4s|%.2s", ["a", "b", "cde"], "         a|b   |cd"),
        ("%u %d", [-1, -1], "4294967295 -1"),
        ("%+d % d", [3, 4], "+3  4"),
    ],
)
def test_formats_are_those_of_c(text: str, values: list[object], result: str) -> None:
    assert format_values(*split_format(text), values) == result


def info(value: Type, key: Type | None = None) -> MapInfo:
    """A map of such values."""
    return MapInfo("@m", "m", 10, value, key, key is None)


def test_a_map_has_a_line_for_each_key() -> None:
    assert map_text(info(I64, I64), [(1, 2), (3, 4)]) == "@m[1]: 2\n@m[3]: 4\n"


def test_print_can_show_the_last_rows_and_divide() -> None:
    assert map_text(info(I64, I64), [(1, 20), (2, 30), (3, -45)], 2, 10) == "@m[2]: 3\n@m[3]: -4\n"


def test_stats_are_shown_as_a_struct() -> None:
    text = map_text(info(Type("stats", 8)), [(None, Stats(2, 3, 6))])
    assert text == "@m: { .count = 2, .average = 3, .total = 6 }\n"


def test_a_map_is_a_line_of_json() -> None:
    line = map_json(info(I64, I64), [(1, 2)])
    assert json.loads(line) == {"type": "map", "data": {"@m": {"1": 2}}}
