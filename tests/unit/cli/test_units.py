"""Durations and sizes in few columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.cli.units import duration_text, size_text


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0ns"),
        (999, "999ns"),
        (2000, "2.00us"),
        (9_999, "10.0us"),
        (999_499, "999us"),
        (999_500, "1.00ms"),
        (12_345_678, "12.3ms"),
        (59_940_000_000, "59.9s"),
        (59_990_000_000, "1m00s"),
        (95_000_000_000, "1m35s"),
        (7_500_000_000_000, "2h05m"),
        (86_399_700_000_000, "1d00h"),
    ],
)
def test_durations(duration_ns: int, text: str) -> None:
    assert duration_text(duration_ns) == text


@given(st.integers(0, 99 * 86400 * 10**9))
def test_durations_have_six_characters_at_most(duration_ns: int) -> None:
    assert len(duration_text(duration_ns)) <= 6


@given(st.integers(0, 2**64 - 1))
def test_sizes_have_four_characters_and_are_right_to_a_twentieth(size: int) -> None:
    shown = size_text(size)
    assert len(shown) <= 4
    unit = shown[-1] if shown[-1].isalpha() else ""
    number = float(shown.removesuffix(unit)) * 1000 ** " kMGTPE".index(unit or " ")
    assert abs(number - size) <= size / 19
