"""Windows of a trace that goes on: each like a run of its own, with the tables of those before."""

from __future__ import annotations

import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from purebpf.measure.sched_trace import Request, Times
from purebpf.measure.time_windows import TimeWindows
from purebpf.services.agent.config import Kind
from purebpf.services.agent.waits import Waits, WaitWindow
from purebpf.symbols.frame import Frame
from tests.commands.conftest import Workloads

pytestmark = pytest.mark.needs("bpf", "gcc")

NAP_NS = 2_000_000


def windows(request: Request, count: int, seconds: float = 0.2) -> list[Times]:
    taken = []
    with TimeWindows(request) as traced:
        for number in range(count):
            if number:
                traced.resume()
            traced.wait(at_most_s=seconds)
            taken.append(traced.window())
            traced.forget({place.pid for place in taken[-1].spans})
    return taken


@pytest.mark.needs("perf_event")
def test_each_window_has_all_the_time_of_a_thread(workloads: Workloads) -> None:
    """What was open at its end counts up to there, and in the next window from its start on."""
    with workloads.running("wait", "naps", "0", "2000") as pid:
        request = Request(pids=(pid,), states="RSDITtPW", on_cpu=True, frequency=49)
        taken = windows(request, 5)
    for times in taken:
        total = sum(span.duration_ns for span in times.spans.values())
        assert total == pytest.approx(times.ended_ns - times.started_ns, abs=1_000_000)
        naps = sum(span.times for place, span in times.spans.items() if place.state == "S")
        most = (times.ended_ns - times.started_ns) // NAP_NS + 1
        assert 0 < naps <= most, "those of this window alone, however busy the machine is"
        assert times.stats["counted"] <= 4 * most
    for before, after in pairwise(taken):
        assert before.ended_ns < after.started_ns


def test_a_thread_that_sleeps_through_all_windows_is_in_each_with_its_stack(
    workloads: Workloads,
) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            until_asleep(process.pid)
            taken = windows(Request(pids=(process.pid,)), 4, 0.1)
        finally:
            process.kill()
    for times in taken:
        ((place, span),) = times.spans.items()
        assert place.state == "S"
        assert place.is_open
        assert span.duration_ns == times.ended_ns - times.started_ns
        assert len(times.traces[place.kernel].addresses) > 3
        if times.are_shown:
            assert place.user in times.traces


def until_asleep(pid: int) -> None:
    end = time.monotonic() + 60
    while "sleep" not in (Path("/proc") / str(pid) / "wchan").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)


def names_of(window: WaitWindow, pid: int) -> set[str]:
    return {
        frame.name
        for row in window.profile.rows()
        if row.labels.pid == pid and not row.marks.is_open
        for frame in row.user or ()
        if isinstance(frame, Frame)
    }


def test_tables_stay_from_one_window_to_the_next(workloads: Workloads) -> None:
    """The first one copies the stacks of a process, later ones walk them."""
    with workloads.running("wait", "naps", "0", "2000") as pid:
        taken = windows(Request(pids=(pid,)), 4, 0.5)
    copied = [times.stats["copied"] for times in taken]
    if taken[0].about_stacks["call_graph"] == "tables":
        assert copied[0] > 0
        assert copied[-1] == 0


def test_windows_of_a_thread_have_names(workloads: Workloads) -> None:
    with workloads.running("wait", "naps", "0", "2000") as pid, Waits(Kind()) as waits:
        for number in range(3):
            if number:
                waits.resume()
            time.sleep(0.5)
            window = waits.window()
            assert "main" in names_of(window, pid)
            assert pid in window.cgroups


def test_what_traces_waits_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not keep the agent waiting for a window that will not come."""

    def fail(_: object) -> None:
        raise OSError("not foreseen")

    monkeypatch.setattr(TimeWindows, "window", fail)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    with Waits(Kind()) as waits, pytest.raises(Exception, match="has ended"):
        waits.window()
