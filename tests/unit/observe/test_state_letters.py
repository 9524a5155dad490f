"""The letters of tasks' states."""

from __future__ import annotations

import pytest

from purebpf.observe.instruments.thread_registers import state_letter


@pytest.mark.parametrize(
    ("bits", "letter"),
    [
        (0x0, "R"),
        (0x1, "S"),
        (0x402, "D"),
        (0x4, "T"),
        (0x2001, "S"),  # TASK_FREEZABLE
        (0x8000, "D"),  # TASK_FROZEN: a frozen cgroup of version 1
        (0x1000, "D"),  # TASK_RTLOCK_WAIT
        (0x200, "R"),  # TASK_WAKING
    ],
)
def test_the_letter_of_a_state(bits: int, letter: str) -> None:
    assert state_letter(bits) == letter
