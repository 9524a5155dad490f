"""The layouts of values, maps and histograms, byte for byte."""

from __future__ import annotations

import json
import struct

import pytest

from purebpf.observe.script.names import LocalNames
from purebpf.script.format_string import split_format
from purebpf.script.host import NoHost
from purebpf.script.map_info import MapInfo
from purebpf.script.output.compiled_formats import compile_format
from purebpf.script.output.decode import Decoder
from purebpf.script.output.histogram import list_buckets, show_histogram
from purebpf.script.output.map_rows import Stats, rows_of
from purebpf.script.output.map_text import map_json, map_text
from purebpf.script.output.text import format_values, show, show_key
from purebpf.script.output.time_series import (
    TimeSeries,
    combine_cpus,
    cut_series,
    list_intervals,
    show_series,
)
from purebpf.script.types import (
    BOOL,
    I64,
    U64,
    VOID,
    Type,
    offsets,
    pointer,
    string,
    tuple_of,
)
from purebpf.script.world import World

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


SECOND = 10**9


def element(value: int, second: int, interval: int) -> bytes:
    """Return the words of one CPU for an interval of tseries()."""
    return b"".join(word.to_bytes(8, "little", signed=True) for word in (value, second, interval))


@pytest.mark.parametrize(
    ("text", "value"), [("", -5), ("min", -9), ("max", 4), ("sum", -10), ("avg", -1)]
)
def test_an_interval_has_the_value_of_the_cpus_that_wrote_it_last(text: str, value: int) -> None:
    type_ = Type("tseries", 8, True, numbers=(SECOND, 3), text=text)
    parts = [element(4, 1, 7), element(-5, 4, 7), element(-9, 2, 7), element(100, 9, 4), bytes(24)]
    assert combine_cpus(type_, parts) == (7, value)


def test_a_series_ends_with_the_newest_interval_of_all_keys() -> None:
    type_ = Type("tseries", 8, True, numbers=(SECOND, 3))
    rows = cut_series(type_, {"a": {8: 1}, "b": {7: 2, 6: 9, 4: 5}, "c": {3: 5}})
    assert rows == [
        ("c", TimeSeries(SECOND, ((8 * SECOND, None),))),
        ("b", TimeSeries(SECOND, ((6 * SECOND, 9), (7 * SECOND, 2), (8 * SECOND, None)))),
        ("a", TimeSeries(SECOND, ((8 * SECOND, 1),))),
    ]


def test_equal_ends_of_series_are_in_the_order_of_keys_and_one_interval_is_shown_in_ns() -> None:
    series = Type("tseries", 8, True, numbers=(SECOND, 3))
    info = MapInfo("@", "m0", 9, value=series, key=I64, is_scalar=False)
    decoder = Decoder(World(NoHost()), [], LocalNames(None, None), 64, "..")
    items = [
        (key.to_bytes(8, "little") + (8).to_bytes(8, "little"), (element(key, 1, 8),))
        for key in (3, 1, 2)
    ]
    found = rows_of(info, items, decoder)
    assert [key for key, _ in found] == [1, 2, 3]
    assert show_series(found[0][1]).splitlines()[1].startswith("hh:mm:ss.ns        |___")


def test_a_series_is_a_graph_and_a_list_of_json() -> None:
    begin = 1_600_000_000 * 1000
    points = [(begin, -10), (begin + 1, None), (begin + 2, 10)]
    series = TimeSeries(10**6, tuple((number * 10**6, value) for number, value in points))
    lines = show_series(series).splitlines()
    line = "_" * 51
    assert lines[0] == lines[-1] == f"{'':13}-10{'':18}{'10':>32}"
    assert lines[1] == f"hh:mm:ss.ms  |{line}|"
    assert [row[8:] for row in lines[2:5]] == [
        f".000 *{'':25}.{'':25}| -10",
        f".001 |{'':25}.{'':25}| -",
        f".002 |{'':25}.{'':25}* 10",
    ]
    assert lines[5] == f"{'':13}v{line}v"
    assert [str(row["interval_start"])[19:] for row in list_intervals(series)] == [
        ".000000000",
        ".002000000",
    ]
    assert show_series(TimeSeries(1, ())) == "<no data>"
    counts = show_series(TimeSeries(1, ((0, 0),), is_signed=False)).splitlines()
    assert counts[0].split() == ["0", "1"]


def test_flags_for_pages_are_named() -> None:
    conversions, rest = split_format("%gr|%16gr|%-8gr|")
    assert format_values(conversions, rest, [0xCC0, 1, 0x40]) == (
        "GFP_KERNEL|         GFP_DMA|__GFP_IO|"
    )


@pytest.mark.parametrize("bits", ["", "hh", "h", "l", "ll"])
@pytest.mark.parametrize("flags", ["", "-", "0", "+", " ", "#", "-0", "+0"])
@pytest.mark.parametrize("width", ["", "3", "12", ".3", "9.4", ".0"])
def test_compiled_formats_of_numbers_write_what_the_others_write(
    flags: str, width: str, bits: str
) -> None:
    number = {kind: f"%{flags}{width}{bits}{kind}" for kind in "diuxXo"}
    _compare_formats(
        "".join(f"<{kind} 100%% {text}>" for kind, text in number.items()), [I64] * len(number)
    )


@pytest.mark.parametrize("flags", ["", "-", "0"])
@pytest.mark.parametrize("width", ["", "3", "12", ".2", "6.3"])
@pytest.mark.parametrize("kind", ["s", "c", "p"])
def test_compiled_formats_of_other_values_write_what_the_others_write(
    flags: str, width: str, kind: str
) -> None:
    types = {
        "s": [I64, U64, string(8), string(80), BOOL, tuple_of([I64, string(8)])],
        "c": [I64, U64],
        "p": [U64, pointer("void", lambda: VOID)],
    }[kind]
    _compare_formats(" ".join([f"{{%{flags}{width}{kind}}}"] * len(types)), types)


def _compare_formats(text: str, types: list[Type]) -> None:
    """Compare both ways from records to text; those without a compiled format have `#` or more."""
    decoder = Decoder(World(NoHost()), [], LocalNames(None, None), 79, "..")
    formatter = compile_format(text, types, decoder)
    if formatter is None:
        assert set(text) & set("#cp")
        return
    size = offsets(types)[1]
    numbers = [0, 1, -1, 65, 255, -4096, 1 << 31, (1 << 63) - 1, -(1 << 63), 0x123456789ABCDEF]
    records = [
        bytes(8)
        + b"".join(struct.pack("<q", numbers[(index + at) % 10]) for at in range(size // 8))
        for index in range(30)
    ]
    records += [bytes(8) + (b"abcdefgh" * size)[:size], bytes(8) + (b"\xff\0" * size)[:size]]
    conversions, rest = split_format(text)
    assert list(formatter(records)) == [
        format_values(conversions, rest, decoder.values(types, record[8:])) for record in records
    ]
