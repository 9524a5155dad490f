"""Open files go as far up as they may; the priority, where it is the usual one."""

from __future__ import annotations

import os
import resource

import pytest

from purebpf.loader.host import process_limits
from purebpf.measure.limits import NICE, raise_open_files, raised_priority


def test_the_soft_limit_becomes_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard))
    try:
        raise_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Priority:
    """That of a thread; `may_rise` as with CAP_SYS_NICE."""

    def __init__(self, nice: int, *, may_rise: bool = True) -> None:
        self.nice, self.may_rise = nice, may_rise

    def get(self, *_: int) -> int:
        return self.nice

    def set(self, _which: int, _who: int, nice: int) -> None:
        if nice < self.nice and not self.may_rise:
            raise PermissionError(13, "Permission denied")
        self.nice = nice


@pytest.mark.parametrize(
    ("before", "may_rise", "within"),
    [(0, True, NICE), (0, False, 0), (5, True, 5), (NICE, True, NICE)],
)
def test_only_the_usual_priority_is_raised_and_comes_back(
    before: int, may_rise: bool, within: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    priority = Priority(before, may_rise=may_rise)
    monkeypatch.setattr(os, "getpriority", priority.get)
    monkeypatch.setattr(os, "setpriority", priority.set)
    nice_within = 0

    def fail() -> None:
        nonlocal nice_within
        with raised_priority():
            nice_within = priority.nice
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert nice_within == within
    assert priority.nice == before


def test_a_process_that_may_not_ask_reads_its_limits_from_proc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, memory = process_limits.open_files(), process_limits.locked_memory()

    def refuse(*_: object) -> tuple[int, int]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(resource, "getrlimit", refuse)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_open_files()
    assert process_limits.open_files() == files
    assert process_limits.locked_memory() == memory
