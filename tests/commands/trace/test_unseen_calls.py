"""Calls that the kernel refuses before it traces them, and those in progress at the start."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from purebpf.measure.run import prepare
from purebpf.measure.run import run as follow_to_the_end
from purebpf.tools.exec import ExecOptions, Processes
from purebpf.tools.open import OpenOptions, Opens
from purebpf.tools.summary import Summary, SummaryOptions
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.trace.events import Call, Ended, Event, Signalled
from tests.support.nightly import by_day
from tests.support.patience import until

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "x86_64", "current_task_btf"),
]
TIMES = 5
REFUSED = ("errno", "zero", "trap", "nobody", "supervisor", "emulated", "skipped")
KILLED = ("thread", "strict")


@pytest.fixture(scope="module")
def unseen(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of unseen.c."""
    target = tmp_path_factory.mktemp("unseen") / "unseen"
    source = Path(__file__).with_name("unseen.c")
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", target, source], check=True)
    return str(target)


def follow(kind: Any, options: Any) -> list[Any]:
    """Everything that a session shows of its command."""
    events: list[Any] = []
    make = partial(kind, options)
    with prepare(make, options.command) as (session, ends):
        last = follow_to_the_end(session, ends, lambda: events.extend(session.drain()))
        ends.status()
    assert not [cause for cause in last.loss.causes if cause.lost]
    return [*events, *last.events]


def traced(*command: str, **asked: Any) -> list[Event]:
    return follow(Traces, TraceOptions(command=command, **asked))


def calls_of(events: list[Event], name: str) -> list[Call]:
    return [event for event in events if isinstance(event, Call) and event.name == name]


def by_strace(program: str, kind: str, name: str) -> list[str]:
    """The lines of a call, without the ID of the process; (pid 7) and resumed lines are joined."""
    command = ["strace", "-f", "-qq", "-e", f"trace={name}", "-e", "signal=none", program, kind]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    lines = [re.sub(r"^\[pid +\d+\] ", "", line) for line in said.splitlines()]
    return [line for line in lines if line.startswith(name)]


@pytest.mark.needs("strace")
@pytest.mark.parametrize("kind", by_day(["errno", "zero", "trap", "nobody"], ["zero", "trap"]))
def test_a_refused_call_is_shown_as_strace_shows_it(unseen: str, kind: str) -> None:
    seen = calls_of(traced(unseen, kind), "linkat")
    lines = [f"linkat({', '.join(call.arguments)}) = {call.result_text}" for call in seen]
    assert lines == [re.sub(r" += ", " = ", line) for line in by_strace(unseen, kind, "linkat")]
    assert len(lines) == TIMES


@pytest.mark.parametrize("kind", by_day(REFUSED, ["errno", "nobody", "emulated"]))
def test_each_refused_call_is_shown_once(unseen: str, kind: str) -> None:
    _check_refused(unseen, kind)


@pytest.mark.parametrize("kind", by_day(REFUSED, ["errno", "trap"]))
def test_each_refused_call_is_shown_once_where_it_is_asked_for(unseen: str, kind: str) -> None:
    _check_refused(unseen, kind, "linkat")


def _check_refused(unseen: str, kind: str, *asked: str) -> None:
    seen = calls_of(traced(unseen, kind, events=asked), "linkat")
    assert len(seen) == TIMES
    assert {call.duration_ns for call in seen} == {None}
    assert {call.arguments[1] for call in seen} == {'"/nothing"'}
    assert {call.ending for call in seen} == {"returned"}


@pytest.mark.parametrize("kind", by_day(REFUSED, ["errno", "supervisor", "skipped"]))
def test_the_summary_counts_each_refused_call(unseen: str, kind: str) -> None:
    options = SummaryOptions(command=(unseen, kind), calls=("linkat",), hook="tp_btf")
    with prepare(partial(Summary, options), options.command) as (session, ends):
        table = follow_to_the_end(session, ends, lambda: None)
        ends.status()
    ((row,),) = (group.rows for group in table.groups)
    failed = 0 if kind in ("zero", "trap") else TIMES
    counted = row.statistics
    assert (row.call.name, counted.calls, counted.errors) == ("linkat", TIMES, failed)
    assert counted.untimed == TIMES
    assert {cause.name: cause.lost for cause in table.loss.causes}["unpaired"] >= TIMES


@pytest.mark.parametrize("kind", KILLED)
def test_a_thread_that_seccomp_kills_ends_in_its_call(unseen: str, kind: str) -> None:
    events = traced(unseen, kind)
    (call,) = calls_of(events, "linkat")
    assert (call.ending, call.result, call.arguments[0]) == ("unfinished", None, "AT_FDCWD")
    (ended,) = [event for event in events if isinstance(event, Ended) and event.signal]
    assert ended.task.tid == call.task.tid


def test_what_is_killed_without_a_siginfo_shows_no_signal(unseen: str) -> None:
    events = traced(unseen, "signals")
    shown = Counter(event.name for event in events if isinstance(event, Signalled))
    assert not shown  # SIGCHLD is ignored
    ends = Counter((event.status, event.signal) for event in events if isinstance(event, Ended))
    assert ends == {(0, ""): 1, (0, "SIGKILL"): 1, (7, ""): 2}


def test_a_new_process_does_not_return_from_its_fork(unseen: str) -> None:
    events = traced(unseen, "forks")
    made = [*calls_of(events, "clone"), *calls_of(events, "fork"), *calls_of(events, "clone3")]
    assert len(made) == TIMES
    assert all(call.result for call in made)
    assert len([event for event in events if isinstance(event, Ended)]) == TIMES + 1


def test_exec_shows_executions_that_seccomp_refuses(unseen: str) -> None:
    events = follow(Processes, ExecOptions(command=(unseen, "exec"), failed=True))
    refused = [event for event in events if getattr(event, "errno", 0)]
    assert [event.path for event in refused] == ["/nothing"] * TIMES


def test_open_shows_files_that_seccomp_refuses(unseen: str) -> None:
    events = follow(Opens, OpenOptions(command=(unseen, "open")))
    refused = [event for event in events if event.path == "/nothing"]
    assert {(event.errno, event.duration_ns) for event in refused} == {(13, None)}
    assert len(refused) == TIMES


@pytest.fixture
def sleeper() -> Any:
    """A process that reads from a pipe, then writes, and the end to write to."""
    code = "import os, sys; os.read(0, 1); os.write(1, b'x'); os.read(0, 1)"
    command = ["python3", "-S", "-E", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        # read(0, ...); a process that runs says so instead
        until(lambda: Path(f"/proc/{process.pid}/syscall").read_text().startswith("0 0x0 "))
        yield process
        process.kill()


def test_a_call_in_progress_is_shown_when_it_returns(sleeper: Any) -> None:
    events: list[Event] = []
    with Traces(TraceOptions(pids=(sleeper.pid,))) as traces:
        os.write(sleeper.stdin.fileno(), b"a")
        until(lambda: events.extend(traces.drain()) or calls_of(events, "write"))
        last = traces.stop()
    first = next(event for event in events if isinstance(event, Call))
    assert (first.name, first.result, first.duration_ns) == ("read", 1, None)
    assert first.arguments[:2] == ("0", '"a"')
    (waits,) = [event for event in last.events if isinstance(event, Call)]
    assert (waits.name, waits.ending) == ("read", "in flight")
    assert waits.duration_ns is not None


@pytest.mark.parametrize("asked", [(), ("read",), ("write",)])
def test_a_call_that_goes_on_all_the_time_is_shown_at_the_end(
    sleeper: Any, asked: tuple[str, ...]
) -> None:
    with Traces(TraceOptions(pids=(sleeper.pid,), events=asked)) as traces:
        calls = [event for event in traces.stop().events if isinstance(event, Call)]
    shown = [(call.name, call.ending, call.duration_ns, call.arguments[0]) for call in calls]
    assert shown == ([] if asked == ("write",) else [("read", "in flight", None, "0")])
