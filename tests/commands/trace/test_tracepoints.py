"""Tracepoints of known programs: each is shown once, between the calls that passed it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial

import pytest

from purebpf.measure.event_session import Ending
from purebpf.measure.run import prepare
from purebpf.measure.run import run as follow_to_the_end
from purebpf.observe.instruments.event_stream import StreamRequest
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.trace.events import Call, Event, Lost, Passed
from tests.support.environment import run

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

PYTHON = (sys.executable, "-S", "-E", "-c")
SIGNALS = """
import os, signal
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for _ in range(211):
    os.kill(os.getpid(), signal.SIGUSR1)
os.execv("/bin/true", ["true"])
"""


def events_of(
    make: Callable[[int], Traces], command: tuple[str, ...], *, reads: bool = True
) -> Ending[Event]:
    """Everything that is seen of a command, and what was lost; `reads`: before it has ended."""
    events: list[Event] = []
    with prepare(make, command) as (session, ends):
        last = follow_to_the_end(
            session, ends, lambda: events.extend(session.drain() if reads else ())
        )
        ends.status()
    return Ending((*events, *last.events), last.loss)


def test_each_is_shown_where_it_was_passed() -> None:
    """211 signals, each generated inside its kill(2)."""
    events = ("signal:signal_generate", "sched:sched_process_exec", "kill")
    command = (*PYTHON, SIGNALS)
    shown = events_of(partial(Traces, TraceOptions(command=command, events=events)), command).events
    calls = [event for event in shown if isinstance(event, Call)]
    passed = [event for event in shown if isinstance(event, Passed)]
    signals = [event for event in passed if event.values.get("sig") == signal.SIGUSR1]
    assert len(calls) == len(signals) == 211
    for call, inside in zip(calls, signals, strict=True):
        assert inside.name == "signal:signal_generate"
        assert inside.arguments["comm"] == f'"{call.task.comm}"'
        assert inside.task == call.task
        assert call.time_ns <= inside.time_ns <= call.time_ns + call.duration_ns
    executed = [event for event in passed if event.name == "sched:sched_process_exec"]
    assert executed[-1].values["filename"] == "/bin/true"
    assert executed[-1].arguments["filename"] == '"/bin/true"'


def test_every_tracepoint_of_the_scheduler() -> None:
    done = run("trace", "-e", "sched:*", "--format", "strace", "--", "sleep", "0.01")
    assert done.returncode == 0, done.stderr
    assert 'sched:sched_switch(prev_comm="sleep", prev_pid=' in done.stdout
    assert "prev_state=S" in done.stdout
    assert "nanosleep" not in done.stdout, "calls were not asked for"


def test_what_is_lost_is_said_by_name() -> None:
    """A ring of one page, which is read at the end."""

    class Small(Traces):
        def request(self) -> StreamRequest:
            return super().request()._replace(sizes={"events": 4096})

    command = (*PYTHON, SIGNALS)
    options = TraceOptions(command=command, events=("signal:signal_generate",))
    ending = events_of(partial(Small, options), command, reads=False)
    passed = sum(isinstance(event, Passed) for event in ending.events)
    lost = [event for event in ending.events if isinstance(event, Lost)]
    named = sum(event.by_name["signal:signal_generate"] for event in lost)
    assert named == sum(event.calls for event in lost) > 0
    assert passed + named >= 211
    (full,) = (cause for cause in ending.loss.causes if cause.name == "events_full")
    assert full.lost - named in (0, 1)  # the end of the process, which is not a tracepoint


def test_an_unknown_tracepoint_is_a_wrong_option() -> None:
    done = run("trace", "-e", "sched:sched_swich")
    assert done.returncode == 2
    assert "unknown tracepoint 'sched:sched_swich' (similar: sched:sched_switch" in done.stderr
