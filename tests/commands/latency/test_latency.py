"""latency against a program that knows its calls, and times them itself."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.errors import NotSupportedError
from purebpf.measure.run import prepare
from purebpf.measure.run import run as measure
from purebpf.results import Loss
from purebpf.results.shape.histogram import BUCKETS, bucket_bounds
from purebpf.tools.latency import Branch, Call, CallLatency, Interval, LatencyOptions, LatencyRow
from tests.commands.waiting import waiting
from tests.support.environment import ROOT, run, said

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "x86_64")

LEAVES, RECURSIONS, JUMPS, RETURNS, TAILS, THREADS = 11 + 5, 3 * 7, 13, 17, 19, 5
CALLS = {
    "leaf": LEAVES + THREADS,
    "recurse": RECURSIONS,
    "outer": 1,
    "jumps": RETURNS,
    "deep": 23,
    "tail": TAILS,
    "last": TAILS,
    "in_thread": THREADS,
}


class Ran(NamedTuple):
    """What a run gave; `own` are the program's times by function and argument."""

    rows: tuple[LatencyRow, ...]
    branches: tuple[Branch, ...]
    calls: list[Call]
    intervals: list[Interval]
    loss: Loss
    own: list[tuple[str, int, int]]

    @property
    def lost(self) -> dict[str, int]:
        return {cause.name: cause.lost for cause in self.loss.causes if cause.lost}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("latency") / "nested_calls"
    flags = ["-O2", "-g", "-pthread", "-w", "-fno-omit-frame-pointer"]
    source = ROOT / "tests/data/nested_calls.c"
    subprocess.run(["gcc", *flags, "-o", target, source], check=True)
    return target


def trace(program: Path, names: str, capfd: pytest.CaptureFixture[str], **wanted: object) -> Ran:
    functions = tuple(f"{program}:{name}" for name in names.split())
    words = (str(program), str(wanted.pop("mode", "all")))
    options = LatencyOptions(functions, command=words)._replace(**wanted)  # type: ignore[arg-type]
    events: list[Call | Interval] = []
    with prepare(partial(CallLatency, options), words) as (session, ends):
        last = measure(session, ends, lambda: events.extend(session.drain()))
        assert ends.status() == 0
    events += last.events
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    return Ran(
        session.rows,
        session.branches,
        [event for event in events if isinstance(event, Call)],
        [event for event in events if isinstance(event, Interval)],
        last.loss,
        [(name, int(word), int(ns)) for name, word, ns in filter(lambda line: line[1:], lines)],
    )


def test_every_call_is_counted_and_timed(program, capfd):
    names = " ".join([*CALLS, "never_returns"])
    ran = trace(program, names, capfd, slower_ms=0)
    assert {row.function: row.calls for row in ran.rows} == CALLS
    assert ran.lost == {"returns_missed": JUMPS, "unfinished": 1}
    assert Counter(call.function for call in ran.calls) == CALLS
    for row in ran.rows:
        times = [call.took_ns for call in ran.calls if call.function == row.function]
        assert (row.total_ns, row.least_ns, row.most_ns) == (sum(times), min(times), max(times))
        for bucket, count in enumerate(row.buckets):
            low, high = bucket_bounds(bucket)
            assert count == sum(low <= time_ns // 1000 < high for time_ns in times)


def test_times_lie_between_what_the_function_spends_and_what_its_caller_sees(program, capfd):
    """The function spins until its clock has gone on by so much; the caller's includes the probes.

    So there is no tolerance to allow for, however busy the machine is.
    """
    ran = trace(program, "leaf", capfd, slower_ms=0)
    leaf = program_times = [own for own in ran.own if own[0] == "leaf"]
    calls = [call for call in ran.calls if call.tid == call.pid]
    assert len(calls) == len(leaf) == LEAVES
    for call, (_, spun_us, seen_ns) in zip(calls, program_times, strict=True):
        assert spun_us * 1000 <= call.took_ns <= seen_ns
        assert call.result & 0xFFFFFFFF == -spun_us & 0xFFFFFFFF


def test_own_time_is_the_rest(program, capfd):
    ran = trace(program, "outer leaf recurse in_thread", capfd, time=True)
    by_path = {branch.path: branch for branch in ran.branches}
    assert {path: branch.calls for path, branch in by_path.items()} == {
        ("leaf",): 11,
        ("outer",): 1,
        ("outer", "leaf"): 5,
        ("in_thread",): THREADS,
        ("in_thread", "leaf"): THREADS,
        **{("recurse",) * depth: 3 for depth in range(1, 8)},
    }
    for path, branch in by_path.items():
        below = sum(other.total_ns for other in ran.branches if other.path[:-1] == path)
        assert branch.self_ns == branch.total_ns - below
        assert branch.self_ns > 0
    assert ran.lost == {}
    assert by_path["outer",].self_ns >= 1_000_000
    assert by_path["outer", "leaf"].self_ns >= 5 * 2_000_000


def test_recursion_beyond_what_the_kernel_follows_is_counted(program, capfd):
    ran = trace(program, "deep", capfd, mode="deep")
    assert [row.calls for row in ran.rows] == [64]
    assert ran.lost == {"too_deep": 101 - 64}


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("arg1:int", {"6": 3, "5": 3, "4": 3, "3": 3, "2": 3, "1": 3, "0": 3}),
        ("ret:int", {"6": 3, "5": 3, "4": 3, "3": 3, "2": 3, "1": 3, "0": 3}),
        ("comm", {"nested_calls": 21}),
        ("process", {"nested_calls": 21}),
        ("thread", {"nested_calls": 21}),
    ],
)
def test_calls_are_grouped(program, capfd, by, groups):
    ran = trace(program, "recurse", capfd, by=by)
    assert {row.group: row.calls for row in ran.rows} == groups


def test_results_below_zero_have_a_sign(program, capfd):
    ran = trace(program, "leaf", capfd, by="ret:int")
    assert {row.group: row.calls for row in ran.rows} == {
        "-500": 7, "-4000": 4, "-2000": 5, "-100": 5
    }  # fmt: skip


def test_calls_are_counted_without_their_returns(program, capfd):
    ran = trace(program, "jumps never_returns leaf", capfd, only_count=True)
    counts = {row.function: row.calls for row in ran.rows}
    assert counts == {"jumps": JUMPS + RETURNS, "never_returns": 1, "leaf": CALLS["leaf"]}
    assert ran.lost == {}


def test_linear_buckets_hold_what_they_say(program, capfd):
    ran = trace(program, "leaf", capfd, linear=500, slower_ms=0)
    (row,) = ran.rows
    times = [min(call.took_ns // 500_000, BUCKETS - 1) for call in ran.calls]
    assert {at: count for at, count in enumerate(row.buckets) if count} == {
        at: times.count(at) for at in set(times)
    }


def test_slow_calls_have_their_callers(program, capfd):
    ran = trace(program, "leaf", capfd, slower_ms=1.9, stacks=True)
    slow = [call for call in ran.calls if "outer" in call.user_stack]
    assert len(slow) == 5
    assert {call.user_stack[:3] for call in slow} == {("outer", "do_all", "main")}
    assert {call.kernel_stack for call in slow} == {()}


def test_intervals_add_up(program, capfd):
    ran = trace(program, "leaf recurse", capfd, interval_s=0.01)
    sums: Counter[str] = Counter()
    for interval in ran.intervals:
        for row in interval.rows:
            assert sum(row.buckets) == row.calls
            sums[row.function] += row.calls
    assert sums == {"leaf": CALLS["leaf"], "recurse": CALLS["recurse"]}
    assert len(ran.intervals) > 1


def test_calls_without_a_row_or_a_place_in_the_tree_are_counted_as_lost(program, capfd):
    ran = trace(program, "recurse", capfd, by="arg1:int", time=True, rows=1)
    assert ran.lost["rows_full"] == 21 - sum(row.calls for row in ran.rows) > 0
    assert ran.lost["nodes_full"] == 21 - sum(branch.calls for branch in ran.branches) > 0


def test_a_pattern_finds_functions(program, capfd):
    ran = trace(program, "*_thread recurs?", capfd, only_count=True)
    assert {row.function: row.calls for row in ran.rows} == {"in_thread": 5, "recurse": 21}


@pytest.fixture(scope="module")
def usdt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("usdt") / "usdt_workload"
    source = ROOT / "tests/data/usdt_workload.c"
    subprocess.run(["gcc", "-O1", "-o", target, source], check=True)
    return target


@pytest.mark.parametrize("pair", ["forms,symbolic", "indexed,guarded", "guarded,silent"])
def test_static_probes_make_a_pair(usdt, pair):
    """`guarded` is passed three times: as many calls begin, of which one ends."""
    begin, end = pair.split(",")
    with subprocess.Popen([usdt], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        options = LatencyOptions(pairs=(f"{usdt}:purebpf:{begin},{end}",), pids=(process.pid,))
        with CallLatency(options) as session:
            assert process.stdin
            assert process.stdout
            for _ in range(7):
                process.stdin.write(b"\n")
                process.stdin.flush()
                watched = process.stdout.readline()
            ending = session.stop()
        process.stdin.close()
    assert [row.calls for row in session.rows] == [7]
    assert session.rows[0].function == f"usdt_workload:purebpf:{begin},{end}"
    lost = {cause.name: cause.lost for cause in ending.loss.causes if cause.lost}
    assert lost == ({"in_flight": 7 * 2} if begin == "guarded" else {})
    assert bool(int(watched)) == ("guarded" in pair)  # its semaphore


def trace_probes(usdt: Path, pair: str, by: str, lines: int = 3) -> dict[str, int]:
    """Calls by group of a pair of static probes that are passed for each line."""
    with subprocess.Popen([usdt], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        options = LatencyOptions(pairs=(f"{usdt}:purebpf:{pair}",), pids=(process.pid,), by=by)
        with CallLatency(options) as session:
            assert process.stdin
            assert process.stdout
            for _ in range(lines):
                process.stdin.write(b"\n")
                process.stdin.flush()
                process.stdout.readline()
            session.stop()
        process.stdin.close()
    return {row.group: row.calls for row in session.rows}


@pytest.mark.parametrize(
    ("by", "value"),
    [
        *(("arg1", -2), ("arg2", 254), ("arg3", -2), ("arg4", 65534), ("arg5", -2)),
        *(("arg6", 4294967294), ("arg6:int", -2), ("arg7", 0x1122334455667788)),
        *(("arg8", -5_000_000_000), ("arg9", -9), ("arg10", 71), ("arg11", 30), ("arg12", 10)),
    ],
)
def test_static_probes_are_grouped_by_an_argument(usdt, by, value):
    assert trace_probes(usdt, "forms,symbolic", by) == {str(value): 3}


def test_an_argument_may_be_an_element_of_an_array(usdt):
    assert trace_probes(usdt, "indexed,symbolic", "arg1") == {"50": 3}
    assert trace_probes(usdt, "indexed,symbolic", "arg2") == {"70": 3}


def test_each_place_of_a_probe_has_its_argument(usdt):
    """The last of three places is the one that ends: it has a constant."""
    assert trace_probes(usdt, "guarded,silent", "arg1") == {"2": 3}


@pytest.mark.parametrize(
    ("pair", "by", "said"),
    [
        ("silent,symbolic", "arg1", "it has 0: ''"),
        ("vector,silent", "arg2", "unknown register 'xmm0'"),
    ],
)
def test_arguments_that_are_not_there_are_refused(usdt, pair, by, said):
    with pytest.raises(NotSupportedError, match=re.escape(said)):
        trace_probes(usdt, pair, by)


@pytest.mark.needs("tracefs")
def test_tracepoints_make_a_pair(workloads):
    pair = "syscalls:sys_enter_getppid,sys_exit_getppid"
    with (
        waiting(workloads, "calls", 101) as workload,
        CallLatency(LatencyOptions(pairs=(pair,), pids=(workload.pid,))) as session,
    ):
        workload.act()
        ending = session.stop()
    assert [(row.function, row.calls) for row in session.rows] == [(pair, 101)]
    assert not ending.loss.any


def shown(program: Path, *options: str) -> Iterator[str]:
    done = run("latency", f"{program}:leaf", *options, "--", str(program), "all")
    assert done.returncode == 0, done.stderr
    assert "lost: nothing" in said(done)
    return (line for line in done.stdout.splitlines() if line.split(" ")[0] not in CALLS)


def test_the_command_prints_a_table_and_a_histogram(program):
    lines = list(shown(program))
    table = lines[lines.index("done") + 1 :]
    assert table[0].split()[:2] == ["CALLS", "TOTAL"]
    assert table[1].split()[0] == str(CALLS["leaf"])
    counts = [int(line.split()[4]) for line in table[3:]]
    assert sum(counts) == CALLS["leaf"]
    assert all(len(line) <= 80 for line in table)


def test_the_command_writes_json_and_csv(program, tmp_path):
    list(shown(program, "--format", "json", "-o", str(tmp_path / "json"), "--slower", "1900us"))
    *calls, summary, loss = map(json.loads, (tmp_path / "json").read_text().splitlines())
    assert {call["event"] for call in calls} == {"call"}
    assert summary["rows"][0]["calls"] == CALLS["leaf"]
    assert loss["loss"]["returns_missed"] == 0
    list(shown(program, "--format", "csv", "-o", str(tmp_path / "csv")))
    header, row = (tmp_path / "csv").read_text().splitlines()
    values = dict(zip(header.split(","), row.split(","), strict=True))
    assert values["calls"] == str(CALLS["leaf"])


def test_what_is_not_there_is_said(program):
    done = run("latency", f"{program}:no_such_function", "0.1")
    assert done.returncode == 1
    assert "does not have a function 'no_such_function'" in said(done)
