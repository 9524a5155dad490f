"""Packed numbers, in the form of each version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.runtimes.hotspot.unsigned5 import read_unsigned5, signed
from tests.unit.runtimes.hotspot.fake_jvm import packed

FORMS = [pytest.param(0, id="before-20"), pytest.param(1, id="since-20")]


@pytest.mark.parametrize("least_byte", FORMS)
@given(numbers=st.lists(st.integers(0, (1 << 32) - 1)))
def test_numbers_come_back(least_byte: int, numbers: list[int]) -> None:
    data, at, found = packed(least_byte, *numbers), 0, []
    while at < len(data):
        number, at = read_unsigned5(data, at, least_byte)
        found.append(number)
    assert found == numbers


def test_examples_of_both_forms() -> None:
    assert read_unsigned5(b"\xbf", 0, 0) == (191, 1)
    assert read_unsigned5(b"\xc0\x00", 0, 0) == (192, 2)
    assert read_unsigned5(b"\xbf", 0, 1) == (190, 1)
    assert read_unsigned5(b"\xc0\x01", 0, 1) == (191, 2)


@pytest.mark.parametrize("data", [b"", b"\xff", b"\xff\xff\xff\xff"])
def test_data_that_ends_inside(data: bytes) -> None:
    with pytest.raises(ValueError, match="ends inside"):
        read_unsigned5(data, 0, 1)


def test_signs() -> None:
    assert [signed(each) for each in range(5)] == [0, -1, 1, -2, 2]
