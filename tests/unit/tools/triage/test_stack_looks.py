"""Stacks of waiters at several looks."""

from __future__ import annotations

from collections import Counter

from purebpf.tools.triage.stack_looks import StackLooks


def test_waiters_are_stuck_that_had_one_stack_at_all_looks() -> None:
    looks: StackLooks[str] = StackLooks()
    looks.add(7, Counter(take=3, ask=1), [(1, "take"), (2, "take"), (3, "take"), (4, "ask")])
    looks.add(7, Counter(take=2, ask=2), [(1, "take"), (5, "take"), (3, "ask"), (4, "ask")])
    looks.add(9, Counter(), [])
    assert list(looks.pids) == [7, 9]
    assert list(looks.of_process(7)) == [("take", (3, 2), 1), ("ask", (1, 2), 1)]
    assert list(looks.of_process(9)) == []
