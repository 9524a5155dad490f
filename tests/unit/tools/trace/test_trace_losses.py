"""What is said of lost calls, in their place in the ring: counters are of now, and so ahead."""

from __future__ import annotations

from types import SimpleNamespace

from purebpf.abi import syscalls
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.trace.events import Lost
from purebpf.tools.trace.loading import SLOTS
from purebpf.tools.trace.render import describe

READ, GETPPID = (syscalls.number("x86_64", name) or 0 for name in ("read", "getppid"))


def test_names_are_of_as_many_calls_as_were_lost_there() -> None:
    counters = [0] * (2 * SLOTS)
    traces = Traces(TraceOptions())
    traces.stream = SimpleNamespace(object=SimpleNamespace(globals={"lost": counters}))  # type: ignore[assignment]
    traces._machine = syscalls.machine("x86_64")  # noqa: SLF001
    counters[GETPPID], counters[READ] = 900, 51  # by the time that the first is read
    said = [event for lost in (100, 100, 400, 951) for event in traces._lost_until(lost)]  # noqa: SLF001
    losses = [event for event in said if isinstance(event, Lost)]
    assert [event.calls for event in losses] == [100, 300, 551]
    assert [sum(event.by_name.values()) for event in losses] == [100, 300, 551]
    assert losses[-1].by_name == {"getppid": 500, "read": 51}


def test_a_loss_without_names_is_a_sentence() -> None:
    assert describe(Lost(7, {})) == "... 7 calls lost here"
