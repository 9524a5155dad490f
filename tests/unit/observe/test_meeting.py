"""A process with a sample is asked once what it has mapped, and not at all when it is over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

import pytest

from purebpf.observe.runtimes.cpython import python_process
from purebpf.observe.runtimes.cpython.python_process import find_python
from purebpf.observe.unwind.process_stacks import ProcessStacks, live_mappings
from purebpf.observe.unwind.programs import Met
from purebpf.observe.unwind.stack_finisher import MissedStack
from purebpf.observe.unwind.user_stacks import UserStacks
from purebpf.symbols.address_spaces import Earlier
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall import proc

_GONE = 4_194_304
"""Above any number of a process."""


def _earlier(pid: int, time_ns: int) -> Earlier | None:  # noqa: ARG001
    return None


def test_what_was_read_is_handed_on_once() -> None:
    reads: list[int] = []

    def mappings(pid: int) -> Iterable[Mapping]:
        reads.append(pid)
        return live_mappings(pid)

    own = os.getpid()
    with ProcessStacks(mappings, earlier=_earlier) as stacks:
        met = stacks.meet(own, time.monotonic_ns())
        assert not met.is_over
        assert met.mappings == list(live_mappings(own))
        again = stacks.meet(own, time.monotonic_ns())
        assert not again.is_over
        assert again.mappings is None
    assert reads == [own]


def test_what_cannot_be_read_is_not_taken_for_a_process_without_mappings() -> None:
    with ProcessStacks(lambda _: (), earlier=_earlier) as stacks:
        met = stacks.meet(os.getpid(), time.monotonic_ns())
    assert not met.is_over
    assert met.mappings is None


@pytest.mark.parametrize("event", ["executed", "exited"])
def test_what_a_process_executed_before_is_over(event: str) -> None:
    own, before_ns = os.getpid(), time.monotonic_ns()
    with ProcessStacks(earlier=_earlier) as stacks:
        getattr(stacks, event)(own, before_ns + 1)
        assert stacks.meet(own, before_ns).is_over


@pytest.mark.parametrize("is_over", [False, True])
def test_a_process_that_is_over_is_not_looked_at(*, is_over: bool) -> None:
    """Its interpreter cannot be read any more."""
    told: list[object] = []
    finisher = SimpleNamespace(meet=lambda _: Met(is_over))
    java = SimpleNamespace(publish=lambda *it: told.append(it))
    stacks = SimpleNamespace(
        ask=bool, on_missed=lambda *it: told.append(it), java=java, _finisher=finisher
    )
    missed = SimpleNamespace(copy=SimpleNamespace(tgid=7), process=8, identity=9)
    UserStacks._meet(cast("UserStacks", stacks), cast("MissedStack", missed))
    assert told == ([] if is_over else [(7, 8, 9, None)] * 2)


def test_an_interpreter_is_looked_for_in_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getpid()
    mappings = list(live_mappings(own))
    with find_python(own) as expected:
        monkeypatch.setattr(proc, "maps", None)
        monkeypatch.setattr(python_process, "parse_maps", None)
        with find_python(own, mappings=mappings) as python:
            assert python.runtime == expected.runtime
    assert python_process.find_python(_GONE, mappings=[]) is None
