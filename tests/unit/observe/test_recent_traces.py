"""Stacks that are asked for once, soon: no more are kept than said, the newest."""

from __future__ import annotations

from purebpf.observe.unwind.tickets import RecentTraces
from purebpf.observe.unwind.user_stacks import Finished, Trace
from purebpf.unwind.reason import Reason


def finished(ticket: int) -> tuple[Finished, int]:
    trace = Trace((ticket, 7), Reason.FINISHED, 0)
    return Finished(ticket.to_bytes(8, "little"), trace), 1


def test_what_is_never_asked_for_is_forgotten() -> None:
    recent = RecentTraces(5)
    for first in range(0, 21, 3):
        recent.take(map(finished, range(first, first + 3)))
        assert len(recent) <= 5
    assert [recent.redeem(ticket) is not None for ticket in range(14, 21)] == [False] * 2 + [
        True
    ] * 5
    assert len(recent) == 0


def test_a_stack_can_be_asked_for_once_and_is_a_whole_one() -> None:
    recent = RecentTraces(5)
    recent.take([finished(11)])
    assert recent.redeem(11) == Trace((11, 7), Reason.COMPLETE, 0)
    assert recent.redeem(11) is None
