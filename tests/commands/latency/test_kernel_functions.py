"""Functions of the kernel: where kprobes or trampolines work, by each way that there is."""

from __future__ import annotations

import os

import pytest

from purebpf.loader.features.attach_features import have_attach
from purebpf.loader.features.features import have_attach_cookie
from purebpf.tools.latency import Call, CallLatency, LatencyOptions, attaching
from tests.commands.waiting import waiting
from tests.support.nightly import by_day

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "x86_64", "kprobes")

CALLS = 101
GETPPID = "__do_sys_getppid"
"""__x64_sys_getppid is another name for it, which ftrace and BTF do not have."""
WAYS = ("fentry", "kprobe.session", "kprobe.multi", "kprobe")


def allow(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this way and those behind it."""
    if way != "fentry":
        monkeypatch.setattr(attaching, "_MOST_TRAMPOLINES", 0)
    before = WAYS[: WAYS.index(way)]
    monkeypatch.setattr(
        attaching, "have_attach", lambda name: name not in before and have_attach(name)
    )
    if way != "kprobe" and not have_attach("fexit" if way == "fentry" else way):
        pytest.skip(f"this kernel has no {way}")


@pytest.mark.parametrize("way", by_day(WAYS, ("fentry", "kprobe.session")))
def test_calls_are_counted_timed_and_have_their_results(way, workloads, monkeypatch):
    allow(way, monkeypatch)
    options = LatencyOptions((GETPPID,), by="ret:int", slower_ms=0, stacks=True)
    with (
        waiting(workloads, "calls", CALLS) as workload,
        CallLatency(options._replace(pids=(workload.pid,))) as session,
    ):
        workload.act()
        ending = session.stop()
    assert session.ways == (way,)
    assert [(row.group, row.calls) for row in session.rows] == [(str(os.getpid()), CALLS)]
    calls = [event for event in ending.events if isinstance(event, Call)]
    assert sum(call.took_ns for call in calls) == session.rows[0].total_ns
    outer = {call.kernel_stack[-2:][:1] for call in calls}
    assert outer <= {("do_syscall_64",), ()}
    if have_attach_cookie():  # Linux 5.10 has calls without frames, see docs/latency.md
        assert outer == {("do_syscall_64",)}
        assert {call.user_stack[:1] for call in calls} == {("syscall",)}
    assert not ending.loss.any


@pytest.mark.parametrize("way", [way for way in WAYS if way != "kprobe.session"])
def test_calls_are_counted_without_their_returns(way, workloads, monkeypatch):
    allow(way, monkeypatch)
    options = LatencyOptions((GETPPID,), only_count=True)
    with (
        waiting(workloads, "calls", CALLS) as workload,
        CallLatency(options._replace(pids=(workload.pid,))) as session,
    ):
        workload.act()
        session.stop()
    assert session.ways == (way,)
    assert [row.calls for row in session.rows] == [CALLS]


@pytest.mark.needs("tracefs")
def test_a_pattern_finds_functions_of_the_kernel(workloads):
    options = LatencyOptions((GETPPID.replace("getppid", "getpp?d"), GETPPID))
    with (
        waiting(workloads, "calls", CALLS) as workload,
        CallLatency(options._replace(pids=(workload.pid,))) as session,
    ):
        workload.act()
        session.stop()
    assert [(row.function, row.calls) for row in session.rows] == [(GETPPID, CALLS)]
