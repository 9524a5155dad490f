"""The summary's numbers against a trace of the same calls, taken by other programs.

No two programs read the clock at the same time. So one is attached before the summary and one
after it: the kernel runs them in this order, at the entry and at the return of each call. What the
summary measured lies between what both saw, call by call, and so do its sums.
"""

from __future__ import annotations

import math
import platform
import statistics
from pathlib import Path
from typing import NamedTuple

import pytest

import purebpf
from purebpf.abi import syscalls
from purebpf.tools.summary import Summary, SummaryOptions
from purebpf.tools.summary.statistics import Statistics
from tests.commands.conftest import Workloads
from tests.commands.summary.test_summary import only, rows
from tests.commands.waiting import waiting

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "exact_raw_tracepoints")

STREAM = Path(__file__).parents[2] / "data" / "stream_calls.bpf.o"


class Call(NamedTuple):
    """A call as one program saw it, in nanoseconds of CLOCK_MONOTONIC."""

    tid: int
    nr: int
    entered_ns: int
    returned_ns: int


class Bounds(NamedTuple):
    """The least and the most that a call can have taken, in nanoseconds."""

    least_ns: int
    most_ns: int


def calls(stream: purebpf.Object, nr: int) -> list[Call]:
    """The calls of a number that were entered and returned, one thread after the other."""
    assert stream.globals["lost"] == 0
    open_calls: dict[int, tuple[int, int]] = {}
    found = []
    for moment in stream.maps["moments"].read(timeout=0):
        if moment.enters:
            open_calls[moment.tid] = (moment.nr, moment.time_ns)
        elif moment.tid in open_calls:
            found.append(Call(moment.tid, *open_calls.pop(moment.tid), moment.time_ns))
    return sorted(call for call in found if call.nr == nr)


def between(before: list[Call], after: list[Call]) -> list[Bounds]:
    """What a program that ran between the two can have measured, call by call."""
    assert [call.tid for call in before] == [call.tid for call in after]
    return [
        Bounds(first.returned_ns - last.entered_ns, last.returned_ns - first.entered_ns)
        for first, last in zip(before, after, strict=True)
    ]


def traced(workloads: Workloads, name: str, *arguments: object) -> tuple[Statistics, list[Bounds]]:
    """What the summary says of a call of the workload, and what the trace allows."""
    nr = syscalls.number(syscalls.machine(platform.machine()).native, name)
    assert nr is not None
    with waiting(workloads, *arguments) as workload:
        spec = purebpf.read_object(STREAM).set(tgid=workload.pid)
        with purebpf.load(spec) as before, purebpf.load(spec) as after:
            before.attach()
            with Summary(SummaryOptions(pids=(workload.pid,), hook="tp_btf")) as summary:
                after.attach()
                workload.act()
                found = rows(only(summary.stop()))
            return found[name], between(calls(before, nr), calls(after, nr))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("getppid", ("calls", 10_007)),
        ("clock_nanosleep", ("sleeps", 101, 2_000_000)),
        pytest.param(
            *("clock_nanosleep", ("long-sleeps", 5, 5_000_000_000)),
            marks=(pytest.mark.slow, pytest.mark.any_kernel),
        ),
    ],
)
def test_every_number_is_between_those_of_a_trace(
    workloads: Workloads, name: str, arguments: tuple[object, ...]
) -> None:
    row, bounds = traced(workloads, name, *arguments)
    least = [each.least_ns for each in bounds]
    most = [each.most_ns for each in bounds]
    assert row.calls == len(bounds) == arguments[1]
    assert sum(least) <= row.total_ns <= sum(most)
    assert min(least) <= row.min_ns <= min(most)
    assert max(least) <= row.max_ns <= max(most)
    assert sum(ns * ns for ns in least) <= row.squares <= sum(ns * ns for ns in most)

    # the deviation of numbers that lie in bounds differs from that of the middles by no more
    # than the halves of the bounds do as a vector
    middles = [(low + high) / 2 for low, high in bounds]
    halves = [(high - low) / 2 for low, high in bounds]
    deviation = math.sqrt(row.variance)
    reach = math.sqrt(sum(half * half for half in halves) / (len(bounds) - 1))
    assert abs(deviation - statistics.stdev(middles)) <= reach


def test_the_bounds_are_narrow(workloads: Workloads) -> None:
    """Else the test above would prove nothing."""
    _, bounds = traced(workloads, "clock_nanosleep", "sleeps", 101, 2_000_000)
    widths = [high - low for low, high in bounds]
    assert statistics.median(widths) < 2_000_000 / 20
