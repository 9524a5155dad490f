"""Threads in flight: how many stacks are held at once, and how many threads are shown."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from purebpf.measure import in_flight
from purebpf.measure.in_flight import MOST_THREADS, Sleepers, open_spans
from purebpf.measure.stacks.sleeping import ReadStack, Sleeping
from purebpf.observe.instruments.offcpu_tracer import UNDECIDED, Listed, Switches
from purebpf.observe.unwind.user_stacks import Trace
from purebpf.results.build.offcpu_rows import BEFORE, Place, Span
from purebpf.unwind.sent_registers import SentRegisters

REGISTERS = SentRegisters(is_compat=False, pc=0x1000, values=(None,) * 17)


def asleep(tid: int) -> Listed:
    place = Place("nap", 7, tid, "S", 0, 0)
    where = (UNDECIDED, 0, 0, (0, "?", 0))
    return Listed(place, *where, True, False, False, False, 0, REGISTERS)


class Machine:
    """Threads that sleep, all of them where they were but the ones in `moved`."""

    def __init__(self, count: int, moved: Container[int] = frozenset()) -> None:
        self.walking = None
        self.python = None
        self.started_ns, self.ended_ns = 100, 900
        self._tids = range(1, count + 1)
        self._moved = moved

    def list_tasks(self) -> Iterator[Listed]:
        return map(asleep, self._tids)

    def unseen(self) -> set[int]:
        return {tid for tid in self._tids if tid not in self._moved}


def sleepers(machine: Machine) -> Sleepers:
    return Sleepers(cast("Switches", machine), lambda _: True, walk=True)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many stacks were read at once, each time."""
    counts: list[int] = []

    def read_stacks(threads: Iterable[Sleeping], **_: object) -> dict[int, ReadStack]:
        stacks = {
            thread.tid: ReadStack(Trace((0x1000 + thread.tid % 3,), 0, 0)) for thread in threads
        }
        counts.append(len(stacks))
        return stacks

    monkeypatch.setattr(in_flight, "read_stacks", read_stacks)
    return counts


def test_a_process_of_10000_threads_is_read_in_pieces(held: list[int]) -> None:
    found = sleepers(Machine(10_007))
    assert sum(held) == 10_007
    assert max(held) <= 256
    assert len(found.traces) == 3, "equal stacks are kept once"
    assert (found.undescribed, found.left_out) == (0, 0)


def test_a_stack_of_a_thread_that_moved_is_none(held: list[int]) -> None:
    found = sleepers(Machine(701, moved=frozenset({3, 600})))
    assert found.undescribed == 2
    assert sum(held) == 701
    described = found.describe(Place("nap", 7, 4, "?", 0, 0))
    assert described is not None
    assert found.traces[described.user].addresses == (0x1001,)


def test_threads_beyond_the_most_are_counted(held: list[int]) -> None:
    machine = Machine(MOST_THREADS + 13)
    found = sleepers(machine)
    assert found.left_out == 13
    spans = open_spans(
        machine.list_tasks(),
        found,
        lambda _: True,
        cast("Any", SimpleNamespace(started_ns=100, ended_ns=900)),
        split=False,
        on_cpu=False,
    )
    assert sum(span.times for _, span in spans) == MOST_THREADS
    assert found.left_out == 13
    assert sum(held) == MOST_THREADS


def test_a_thread_that_nobody_woke_had_waited_for_a_cpu(held: list[int]) -> None:
    """It was gone when the list was made: only a wake-up could tell that it had been blocked."""
    found = sleepers(Machine(1))
    ready, woken = (Place("nap", 7, tid, BEFORE, 0, 0) for tid in (2, 3))
    spans = [(ready, Span(1, 600, 0)), (woken, Span(1, 500, 100))]
    assert [*found.describe_spans(spans, split=True)] == [
        (ready._replace(state="R"), Span(1, 0, 600)),
        (woken, Span(1, 500, 100)),
    ]
    assert [*found.describe_spans(spans, split=False)] == spans
    assert sum(held) == 1


def test_threads_that_were_gone_when_the_list_was_made_are_counted(held: list[int]) -> None:
    """Their time since the start is there, without a stack."""
    found = sleepers(Machine(1))
    places = [Place("nap", 7, tid, BEFORE, 0, 0) for tid in (1, 2, 3)]
    for _ in range(2):  # each thread counts once, however often the times are looked at
        spans = [(place, Span(1, 600, 0)) for place in (*places, Place("nap", 7, 4, "S", 5, 5))]
        assert len([*found.describe_spans(spans, split=False)]) == 4
    assert found.undescribed == 2
    assert sum(held) == 1
    assert sleepers(Machine(0)).are_shown, "no thread that a kernel could hide"
