"""Columns of a terminal, and units in which numbers stay short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.results.model.units import count_in_unit, in_unit
from purebpf.results.model.width import cut, cut_start, display_width, fold, pad


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("漢字", 4), ("\uff57", 2), ("e\u0301", 1), ("\u200bx", 1), ("", 0), ("─█", 2)],
)
def test_wide_characters_take_two_columns(text: str, width: int) -> None:
    assert display_width(text) == width


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))), st.integers(0, 40))
def test_what_is_cut_fits(text: str, width: int) -> None:
    shown = cut(text, width)
    assert display_width(shown) <= width
    assert shown == text or shown.endswith("..."[:width])
    assert display_width(pad(text, width)) == width
    end = cut_start(text, width)
    assert display_width(end) <= width
    assert end == text or end.startswith("..."[:width])
    assert text.endswith(end.removeprefix("..."[:width])) or end == text


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (999.6, "1.00 us"),
        (9994, "9.99 us"),
        (9996, "10.0 us"),
        (999_499, "999 us"),
        (999_600, "1.00 ms"),
        (61_000_000_000, "61.0 s"),
        (3_600_000_000_000, "1.00 h"),
        (10**15, "11.6 d"),
    ],
)
def test_durations_have_three_digits(time_ns: float, text: str) -> None:
    assert in_unit(time_ns) == text


@given(st.floats(0, 100_000 * 86_400e9))
def test_durations_stay_short(time_ns: float) -> None:
    assert len(in_unit(time_ns)) <= 8


@given(st.integers(0, 2**64))
def test_counts_are_exact_or_short(count: int) -> None:
    text = count_in_unit(count)
    assert text == str(count) or len(text) <= 6
    assert len(text) <= 8


def test_a_long_line_goes_on_indented() -> None:
    assert fold("  on_exec  uses calls, tgids, events\n", 24) == (
        "  on_exec  uses calls,\n      tgids, events\n"
    )
    assert fold("short\n", 24) == "short\n"
    assert fold("no terminal has columns\n", None) == "no terminal has columns\n"


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x3000, exclude_categories=("C",))))
def test_folded_lines_fit(text: str) -> None:
    assert all(display_width(line) <= 40 for line in fold(text, 40).splitlines())
