"""Which program of which process a walk was of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purebpf.unwind.identity import forked_identity, is_child_of, is_older

_TIMES = st.integers(0, (1 << 54) - 1)
_COUNTS = st.integers(0, 1023)
_WORD = (1 << 64) - 1


def identity(begun_ns, executed):
    """As the program makes it."""
    return (begun_ns << 10 | executed % 1024) & _WORD


@given(_TIMES, _COUNTS, st.integers(0, 1 << 40))
def test_a_child_began_when_it_was_reported_or_before(reported, executed, before):
    forked = forked_identity(identity(12345, executed), reported)
    assert is_child_of(identity(reported - before, executed), forked)
    assert not is_child_of(identity(reported + before + 1, executed), forked)
    assert not is_child_of(identity(reported - before, executed + 1), forked)


@given(_TIMES, _COUNTS, st.integers(1, 500), st.integers(1, 1 << 40))
def test_programs_of_one_number_are_in_order(begun, executed, more, later):
    first = identity(begun, executed)
    assert not is_older(first, first)
    for second in (identity(begun, executed + more), identity(begun + later, executed)):
        assert is_older(first, second)
        assert not is_older(second, first)
