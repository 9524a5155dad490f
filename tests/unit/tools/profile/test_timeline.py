"""Counts by time: how long a slot is, that few are kept, and none is lost."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest

from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.profile.timeline import Timeline, slot_length_ns, sum_by_stack

MS = 1_000_000


class Key(NamedTuple):
    """As struct count_key."""

    user_stack: int
    slot: int = 0


@pytest.mark.parametrize(
    ("frequency", "length_ms"), [(999, 20), (199, 50), (99, 50), (49, 100), (8, 500), (1, 1000)]
)
def test_a_slot_has_room_for_four_samples(frequency: int, length_ms: int) -> None:
    options = ProfileOptions(frequency=frequency, timeline=True)
    assert slot_length_ns(options) == length_ms * MS


def test_without_a_timeline_there_are_no_slots() -> None:
    assert slot_length_ns(ProfileOptions()) == 0


def test_slots_begin_with_the_sampling() -> None:
    counts = [(Key(1, 103), 2), (Key(2, 101), 1), (Key(1, 101), 4), (Key(1, 99), 1)]
    assert list(sum_by_stack(counts, 100)) == [
        (Key(1), 7, ((0, 1), (1, 4), (3, 2))),
        (Key(2), 1, ((1, 1),)),
    ]


def test_too_many_counts_make_slots_longer_and_lose_nothing() -> None:
    timeline = Timeline(20 * MS, most=50)
    counts: Counter[Key] = Counter()
    for slot in range(1000):
        counts[timeline.place(Key(slot % 3, slot))] += 7
        counts = timeline.thin(counts)
    assert len(counts) <= 50
    assert counts.total() == 7000
    width = timeline.slot_ns // (20 * MS)
    expected = Counter[Key]()
    for slot in range(1000):
        expected[Key(slot % 3, slot // width)] += 7
    assert counts == expected


def test_stacks_that_are_too_many_themselves_stay() -> None:
    timeline = Timeline(20 * MS, most=50)
    counts = Counter({Key(stack, 5): 1 for stack in range(60)})
    assert timeline.thin(counts).total() == 60
