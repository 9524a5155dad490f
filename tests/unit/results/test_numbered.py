"""A stack of numbers is the stack of what they stand for."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.formats import FORMATS
from purebpf.results import Profile
from purebpf.results.formats import json, writer
from purebpf.results.model.interned_stack import Numbered
from purebpf.results.shape.frame_table import Numbering
from purebpf.symbols.frame import Address, Frame, Unknown
from tests.support.builders import profiles

TABLE: list[Frame | Unknown] = [
    Frame(f"function_{number}", 0, "app", Address(number), "user") for number in range(5)
]


OTHER_ORDER = {"speedscope", "chrome", "firefox"}
"""Formats that number functions as they come, so that another table is another order."""


def stack(*numbers: int) -> Numbered:
    return Numbered(TABLE, array("I", numbers))


@given(st.lists(st.integers(0, 4)))
def test_it_is_a_sequence_like_the_tuple(numbers: list[int]) -> None:
    found, same = stack(*numbers), tuple(TABLE[number] for number in numbers)
    assert tuple(found) == same
    assert tuple(reversed(found)) == same[::-1]
    assert [found[at] for at in range(-len(found), len(found))] == [*same, *same]
    assert found[1:] == same[1:]
    assert found == same
    assert same == found
    assert hash(found) == hash(same)
    assert repr(found) == repr(same)
    assert bool(found) == bool(same)


def test_it_differs_from_what_differs() -> None:
    assert stack(1, 2) != stack(2, 1)
    assert stack(1, 2) != list(stack(1, 2))


def test_two_tables_with_the_same_entries_get_the_same_numbers() -> None:
    numbers = Numbering(lambda entry: entry, int)
    backwards = Numbered(TABLE[::-1], array("I", [0, 1, 4]))
    assert numbers.of(tuple(stack(3, 4))) == [0, 1]
    assert numbers.of(stack(3, 4, 0)) == [0, 1, 2]
    assert numbers.of(backwards) == [1, 0, 2]
    assert numbers.of(tuple(stack(0, 3))) == [2, 0]
    assert [*numbers] == [TABLE[number] for number in (3, 4, 0, 1, 2)]


@settings(max_examples=20)
@given(profiles.profiles())
@pytest.mark.parametrize("name", sorted(FORMATS.keys() - OTHER_ORDER))
def test_every_format_says_the_same_of_a_profile_that_was_saved(
    name: str, profile: Profile
) -> None:
    again = json.parse(json.document(profile))
    assert [*writer.write(again, name)] == [*writer.write(profile, name)]
