"""Sizes in few columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purebpf.cli.units import size_text


@given(st.integers(0, 2**64 - 1))
def test_sizes_have_four_characters_and_are_right_to_a_twentieth(size: int) -> None:
    shown = size_text(size)
    assert len(shown) <= 4
    unit = shown[-1] if shown[-1].isalpha() else ""
    number = float(shown.removesuffix(unit)) * 1000 ** " kMGTPE".index(unit or " ")
    assert abs(number - size) <= size / 19
