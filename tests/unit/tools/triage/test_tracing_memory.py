"""Processes whose page faults are traced may end at any moment."""

from __future__ import annotations

import os

import pytest

from purebpf.measure.targets import NoSuchTargetError
from purebpf.tools import mem
from purebpf.tools.triage.session import Triage

ENDED = 4_194_304
"""The kernel's largest process ID is one less."""


def test_a_process_that_ended_does_not_end_the_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, ...]] = []

    def enter(memory: mem.Memory) -> mem.Memory:
        asked.append(memory._options.pids)
        if len(asked) == 1:
            raise NoSuchTargetError("no process has this ID")
        return memory

    monkeypatch.setattr(mem.Memory, "__enter__", enter)
    monkeypatch.setattr(mem.Memory, "__exit__", lambda *_: None)
    triage = Triage(1.0)
    assert triage._try_memory((ENDED, os.getpid())) is not None
    assert asked == [(os.getpid(),)] * 2
    assert triage._try_memory((ENDED,)) is None
