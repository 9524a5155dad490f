"""Pieces of a row of numbers: none is handed out twice, and all come back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purebpf.observe.unwind.pieces import Pieces

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(1, 40)),
        st.tuples(st.just("give"), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.integers(0, 2)),
    ),
    max_size=60,
)


@given(_STEPS, st.sampled_from([1, 8]))
def test_pieces_never_overlap_and_are_used_again_after_a_second(steps, aligned):
    now = 0.0
    pieces = Pieces(8, 208, aligned, lambda: now)
    taken, resting = {}, []
    for what, number in steps:
        if what == "take":
            at = pieces.take(number)
            size = -(-number // aligned) * aligned
            busy = [
                *taken.items(),
                *((start, size) for start, size, until in resting if until >= now),
            ]
            if at is not None:
                assert at % aligned == 0
                assert 8 <= at <= at + size <= 208
                assert all(at + size <= start or start + held <= at for start, held in busy)
                taken[at] = size
        elif what == "give" and taken:
            at = sorted(taken)[number % len(taken)]
            size = taken.pop(at)
            pieces.give_back(at, size)
            resting.append((at, size, now + 1))
        elif what == "wait":
            now += 0.6 * number
        assert pieces.kept == sum(taken.values())
    for at, size in taken.items():
        pieces.give_back(at, size)
    now += 2
    assert pieces.take(200) == 8
    assert pieces.take(1) is None
