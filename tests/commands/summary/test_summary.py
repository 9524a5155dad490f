"""Known numbers of calls, counted exactly: by the library, in this process."""

from __future__ import annotations

import errno
import math
import os
import select
import subprocess
from collections import Counter
from collections.abc import Iterator

import pytest

from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.errors import KernelError
from purebpf.loader.features import features
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.loader.types import kernel_btf as btf
from purebpf.measure.targets import NoSuchTargetError
from purebpf.observe.instruments.preemption import syscall_programs_are_preempted
from purebpf.tools.summary import Summary, SummaryOptions, loading
from purebpf.tools.summary.statistics import Statistics
from purebpf.tools.summary.table import Group, Table
from tests.commands.conftest import Workloads
from tests.commands.waiting import waiting
from tests.support import probes

pytestmark = pytest.mark.needs("bpf", "gcc")

needs_btf = pytest.mark.needs("vmlinux_btf")
x86_only = pytest.mark.needs("x86_64")

HOOKS = (
    pytest.param("tp_btf", marks=[needs_btf, pytest.mark.needs("exact_raw_tracepoints")]),
    pytest.param("raw_tp", marks=pytest.mark.needs("exact_raw_tracepoints")),
    pytest.param("tracepoint", marks=pytest.mark.needs("tracefs")),
)


def observed(
    workloads: Workloads, options: SummaryOptions, *arguments: object, calls: int = 1
) -> Table:
    """What a workload does between its two words, as `options` ask with its pid."""
    with (
        waiting(workloads, *arguments, calls=calls) as workload,
        Summary(options._replace(pids=(workload.pid,))) as summary,
    ):
        workload.act()
        return summary.stop()


def only(table: Table) -> Group:
    (group,) = table.groups
    return group


def rows(group: Group) -> dict[str, Statistics]:
    """By name; without the read that the workload waited in, of which only the return was seen."""
    found = {row.call.name: row.statistics for row in group.rows}
    assert len(found) == len(group.rows)
    return {name: row for name, row in found.items() if name != "read" or row.timed}


def lost(table: Table) -> dict[str, int]:
    """What is not zero. Whether the workload waits again already is a matter of luck."""
    found = {cause.name: cause.lost for cause in table.loss.causes if cause.lost}
    assert found.pop("in_flight", 1) == 1
    return found


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("calls", [0, 23, 10_007])
def test_calls_are_counted_exactly(workloads: Workloads, hook: str, calls: int) -> None:
    table = observed(workloads, SummaryOptions(hook=hook), "calls", calls)
    expected = {"write": 1} | ({"getppid": calls} if calls else {})
    assert {name: row.calls for name, row in rows(only(table)).items()} == expected
    assert not any(row.errors for row in rows(only(table)).values())
    assert lost(table) == {"open_at_start": 1}  # the read that it waited in


@pytest.fixture
def no_kernel_btf(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kernel that was built without CONFIG_DEBUG_INFO_BTF."""
    monkeypatch.setattr(btf, "_PATH", "/sys/kernel/btf/none")
    btf.kernel_btf.cache_clear()
    yield
    btf.kernel_btf.cache_clear()


@pytest.mark.usefixtures("no_kernel_btf")
@pytest.mark.parametrize("hook", [*HOOKS[1:], pytest.param(None, marks=HOOKS[2].marks)])
def test_calls_are_counted_without_the_kernels_types(
    workloads: Workloads, hook: str | None
) -> None:
    table = observed(workloads, SummaryOptions(hook=hook), "calls", 23)
    assert {name: row.calls for name, row in rows(only(table)).items()} == {
        "write": 1,
        "getppid": 23,
    }


@needs_btf
@pytest.mark.needs("tracefs")
def test_the_way_to_attach_is_one_that_is_exact() -> None:
    with Summary(SummaryOptions()) as summary:
        assert summary.hook == ("tracepoint" if syscall_programs_are_preempted() else "tp_btf")
        assert summary.why_not == ""
        assert summary.abis_known
        summary.stop()


@needs_btf
@pytest.mark.slow
def test_a_million_and_three(workloads: Workloads) -> None:
    table = observed(workloads, SummaryOptions(), "calls", 1_000_003)
    row = rows(only(table))["getppid"]
    assert row.calls == 1_000_003
    assert 0 < row.min_ns <= row.avg_ns <= row.max_ns < row.total_ns
    assert row.total_ns < table.duration_ns


@pytest.mark.parametrize("hook", HOOKS)
def test_errors_are_counted_by_errno(workloads: Workloads, hook: str) -> None:
    options = SummaryOptions(hook=hook, errno_summary=True)
    found = rows(only(observed(workloads, options, "failures", 7, 11, 13)))
    assert found["openat"].errnos == {2: 7}
    assert found["dup"].errnos == {9: 11}
    assert found["syscall:9999"].errnos == {38: 13}
    for name, calls in (("openat", 7), ("dup", 11), ("syscall:9999", 13)):
        assert found[name].calls == found[name].errors == calls


def test_filters_leave_the_rest_out(workloads: Workloads) -> None:
    def names(options: SummaryOptions) -> dict[str, int]:
        table = observed(workloads, options, "failures", 7, 11, 13)
        return {name: row.calls for group in table.groups for name, row in rows(group).items()}

    assert names(SummaryOptions(only_failed=True)) == {"openat": 7, "dup": 11, "syscall:9999": 13}
    assert names(SummaryOptions(errno=9)) == {"dup": 11}
    assert names(SummaryOptions(calls=("dup", "write"))) == {"dup": 11, "write": 1}
    assert names(SummaryOptions(uid=os.getuid(), calls=("dup",))) == {"dup": 11}
    assert names(SummaryOptions(uid=54321)) == {}
    with pytest.raises(NoSuchTargetError, match="CPU 4095 is offline"):
        names(SummaryOptions(cpus=(4095,)))
    every = tuple(range(os.cpu_count() or 1))
    assert names(SummaryOptions(cpus=every, calls=("dup",))) == {"dup": 11}


@pytest.mark.parametrize("hook", HOOKS)
def test_threads_and_children_are_followed(workloads: Workloads, hook: str) -> None:
    options = SummaryOptions(hook=hook, mode="thread", calls=("getppid",))
    table = observed(workloads, options, "threads", 5, calls=101)
    assert [group.label.name for group in table.groups] == ["worker"] * 5
    assert len({group.label.number for group in table.groups}) == 5
    assert [rows(group)["getppid"].calls for group in table.groups] == [101] * 5

    table = observed(workloads, options._replace(mode="process", tree=True), "forks", 7, calls=103)
    assert [group.label.name for group in table.groups] == ["syscalls"] * 7
    assert [rows(group)["getppid"].calls for group in table.groups] == [103] * 7
    assert lost(table) == {
        "open_at_start": 1,
        "exits": 7,
    }  # the fork they return from is not theirs


def test_one_thread_is_not_its_process(workloads: Workloads) -> None:
    with (
        waiting(workloads, "threads", 3, calls=17) as workload,
        Summary(SummaryOptions(tids=(workload.pid,))) as summary,
    ):
        workload.act()
        found = rows(only(summary.stop()))
    assert "getppid" not in found
    assert found["write"].calls == 1


@pytest.mark.parametrize("hook", HOOKS)
def test_short_threads_lose_nothing(workloads: Workloads, hook: str) -> None:
    options = SummaryOptions(hook=hook, mode="process")
    table = observed(workloads, options, "short-threads", 2003)
    found = rows(only(table))
    assert found["getppid"].calls == 2003
    assert found["prctl"].calls == 2003
    started = found.get("clone3", Statistics()).calls + found.get("clone", Statistics()).calls
    assert started == 2003
    assert lost(table) == {"open_at_start": 1, "exits": 2003}


@needs_btf
@pytest.mark.any_kernel
@pytest.mark.slow
def test_a_hundred_thousand_short_threads_lose_nothing(workloads: Workloads) -> None:
    table = observed(workloads, SummaryOptions(), "short-threads", 100_000)
    assert rows(only(table))["getppid"].calls == 100_000
    assert lost(table) == {"open_at_start": 1, "exits": 100_000}


@needs_btf
@pytest.mark.slow
def test_ten_thousand_threads_are_exact(workloads: Workloads) -> None:
    options = SummaryOptions(mode="thread", calls=("getppid",))
    threads = 1000 if os.environ.get("PUREBPF_SLOW_HOST") else 10_000  # a guest has 1 GB
    table = observed(workloads, options, "crowd", threads, calls=3)
    assert len(table.groups) == threads
    assert all(rows(group)["getppid"].calls == 3 for group in table.groups)
    assert lost(table) == {"open_at_start": 1, "exits": threads}


@needs_btf
@x86_only
@pytest.mark.parametrize("hook", HOOKS)
def test_calls_of_other_abis_have_rows_of_their_own(workloads: Workloads, hook: str) -> None:
    found = rows(only(observed(workloads, SummaryOptions(hook=hook), "abis", 29, 31)))
    assert found["getppid(i386)"].calls == 29
    assert found["getppid(x32)"].calls == 31
    assert "getppid" not in found
    assert "syscall:64" not in found


@needs_btf
@pytest.mark.parametrize("hook", HOOKS)
def test_calls_that_seccomp_refuses_are_counted_without_a_time(
    workloads: Workloads, hook: str
) -> None:
    table = observed(workloads, SummaryOptions(hook=hook, errno_summary=True), "refused", 19)
    refused = rows(only(table))["getppid"]
    assert (refused.calls, refused.errors, refused.untimed) == (19, 19, 19)
    assert sum(refused.errnos.values()) == 19
    assert lost(table) == {"open_at_start": 1, "unpaired": 19}


@needs_btf
@pytest.mark.parametrize("mode", ["total", "thread"])
def test_a_call_in_progress_counts_when_it_returns(workloads: Workloads, mode: str) -> None:
    """It is the read that the workload waits in."""
    (group,) = observed(workloads, SummaryOptions(mode=mode), "calls", 7).groups
    (row,) = [row.statistics for row in group.rows if row.call.name == "read"]
    assert (row.calls - row.timed, row.errors) == (1, 0)


@pytest.mark.parametrize("hook", HOOKS)
def test_execve_in_a_thread_takes_over_the_process(workloads: Workloads, hook: str) -> None:
    with waiting(workloads, "execute-in-thread", 37) as workload:
        options = SummaryOptions(hook=hook, mode="thread", pids=(workload.pid,))
        with Summary(options) as summary:
            workload.begin()
            workload.process.wait()
            table = summary.stop()
    (leader,) = [group for group in table.groups if "getppid" in rows(group)]
    assert leader.label.number == workload.pid
    assert leader.label.name == "exe"
    assert rows(leader)["getppid"].calls == 37
    assert sum(rows(group).get("execve", Statistics()).calls for group in table.groups) == 1
    found = lost(table)
    assert found.pop("tid_changed") == 1
    assert found == {"open_at_start": 1, "exits": 1}


@needs_btf
def test_an_open_call_is_listed_with_its_time(workloads: Workloads) -> None:
    with waiting(workloads, "calls", 1) as workload:
        with Summary(SummaryOptions(pids=(workload.pid,))) as summary:
            before = summary.stop()
        with Summary(SummaryOptions(pids=(workload.pid,))) as summary:
            workload.act()
            after = summary.stop()
    raw = bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT
    if not features.have_helper(raw, bpf_func_id.BPF_FUNC_task_pt_regs):  # Linux 5.15
        assert before.open_calls == ()
        return
    for table, elapsed in ((before, False), (after, True)):
        (call,) = table.open_calls
        assert (call.pid, call.tid, call.comm) == (workload.pid, workload.pid, "syscalls")
        assert call.call.name == "read"
        assert (call.elapsed_ns is not None) == elapsed
    assert lost(before) == {"open_at_start": 1}


@needs_btf
def test_sleeps_have_the_spread_of_their_durations(workloads: Workloads) -> None:
    found = rows(
        only(observed(workloads, SummaryOptions(histogram=True), "sleeps", 101, 2_000_000))
    )
    row = found["clock_nanosleep"]
    assert row.calls == sum(row.buckets) == 101
    assert 2_000_000 <= row.min_ns <= row.avg_ns <= row.max_ns
    low, high = row.percentile_ns(1), row.percentile_ns(100)
    assert low is not None
    assert high is not None
    assert row.min_ns <= low <= high <= row.max_ns


@needs_btf
@pytest.mark.any_kernel
@pytest.mark.slow
def test_squares_of_five_second_sleeps_do_not_overflow(workloads: Workloads) -> None:
    table = observed(workloads, SummaryOptions(), "long-sleeps", 3, 5_000_000_000)
    row = rows(only(table))["clock_nanosleep"]
    assert row.calls == 3
    assert row.total_ns >= 15_000_000_000
    widest = row.max_ns - row.min_ns
    assert 0 <= row.variance <= widest * widest
    assert row.squares >= 3 * (5 * 10**9) ** 2 > 3 << 64
    assert math.isfinite(row.stddev_pct)
    assert row.stddev_pct < 1


@needs_btf
@pytest.mark.parametrize("mode", ["total", "thread", "process", "cgroup"])
def test_every_mode_counts_the_same(workloads: Workloads, mode: str) -> None:
    options = SummaryOptions(mode=mode, errno_summary=True, histogram=True)
    table = observed(workloads, options, "failures", 3, 5, 7)
    found = rows(only(table))
    assert {name: row.errors for name, row in found.items() if row.errors} == {
        "openat": 3,
        "dup": 5,
        "syscall:9999": 7,
    }
    assert sum((row.errnos for row in found.values()), Counter()) == {2: 3, 9: 5, 38: 7}
    assert all(sum(row.buckets) == row.calls for row in found.values())


@needs_btf
def test_a_full_table_is_reported(workloads: Workloads) -> None:
    options = SummaryOptions(mode="thread", map_entries=4, calls=("getppid",))
    table = observed(workloads, options, "threads", 11, calls=13)
    counted = sum(group.calls for group in table.groups)
    found = lost(table)
    assert counted == 4 * 13
    assert counted + found["rows_full"] == 11 * 13


@needs_btf
def test_intervals_add_up(workloads: Workloads) -> None:
    for mode in ("total", "thread"):
        options = SummaryOptions(mode=mode, interval_s=60, errno_summary=True, histogram=True)
        with (
            waiting(workloads, "calls", 10_007) as workload,
            Summary(options._replace(pids=(workload.pid,))) as summary,
        ):
            tables = [summary.interval()]
            workload.act()
            tables += [summary.interval(), summary.interval(), summary.stop()]
        calls = [sum(group.calls for group in table.groups) for table in tables]
        assert calls == [0, 10_009, 0, 0]  # with the read that the workload waited in
        assert [table.interval for table in tables] == [0, 1, 2, 3]
        found = rows(only(tables[1]))["getppid"]
        assert found.calls == sum(found.buckets) == 10_007


@needs_btf
def test_no_call_is_lost_between_intervals(workloads: Workloads) -> None:
    """The tables change hands while the calls go on."""
    with (
        waiting(workloads, "threads", 2, calls=200_003) as workload,
        Summary(SummaryOptions(pids=(workload.pid,), interval_s=60, calls=("getppid",))) as summary,
    ):
        workload.begin()
        tables = [summary.interval()]
        while not select.select([workload.process.stdout], [], [], 0)[0]:
            tables.append(summary.interval())
        workload.expect(b"done\n")
        tables.append(summary.stop())
    found = [row.statistics for table in tables for group in table.groups for row in group.rows]
    assert sum(row.calls for row in found) == 400_006


def test_this_process_is_left_out(workloads: Workloads) -> None:
    with Summary(SummaryOptions(mode="process")) as summary:
        subprocess.run([workloads.path("syscalls"), "calls", "41"], check=True)
        table = summary.stop()
    assert os.getpid() not in {group.label.number for group in table.groups}
    assert 41 in {
        rows(group)["getppid"].calls
        for group in table.groups
        if group.label.name == "syscalls" and "getppid" in rows(group)
    }


def test_an_interrupt_while_it_attaches_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    attach, made = Program.attach, []

    def interrupted(program: Program) -> Link:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(attach(program))
        return made[-1]

    monkeypatch.setattr(Program, "attach", interrupted)
    before = probes.descriptors()
    with pytest.raises(KeyboardInterrupt):
        Summary(SummaryOptions(hook="tracepoint")).__enter__()
    assert [link.closed for link in made] == [True] * 3
    assert probes.descriptors() == before


def test_a_link_that_cannot_end_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    close, ended = Link.close, []

    def refused(link: Link) -> None:
        close(link)
        ended.append(link)
        if len(ended) == 2:
            raise KernelError("close(2)", errno.EIO)

    before = probes.descriptors()
    run = Summary(SummaryOptions(hook="tracepoint")).__enter__()
    monkeypatch.setattr(Link, "close", refused)
    with pytest.raises(KernelError, match="EIO"):
        run.close()
    assert len(ended) == len(loading.HOOKS["tracepoint"])
    assert probes.descriptors() == before
