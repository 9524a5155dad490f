"""Which samples are in the file: each way to choose, beside a process that is not meant."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.tools.record import tree
from purebpf.tools.record.__main__ import main
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Fork, Sample
from tests.commands.conftest import ROOT, Workloads, thread_ids
from tests.support.host import cgroups
from tests.support.patience import until

pytestmark = pytest.mark.needs("perf_event", "gcc")

USER = 4711
LONGER_AND_LONGER_S = ("1", "4", "20")
"""What a busy machine may take until everybody was on a CPU."""


def samples(path: Path) -> list[Sample]:
    data = path.read_bytes()
    records = PerfData(lambda at, size: data[at : at + size], len(data), str(path)).records()
    return [placed.record for placed in records if isinstance(placed.record, Sample)]


def recorded(folder: Path, *target: str, of: tuple[int, ...] = ()) -> list[Sample]:
    """The samples of a target, once there are some, and some of the processes `of`."""
    for seconds in LONGER_AND_LONGER_S:
        command = [sys.executable, "-m", "purebpf", "record", "-v", "-o", "perf.data", "-F", "997"]
        run = subprocess.run(
            [*command, "--sample-cpu", "-e", "cpu-clock:u", *target, seconds],
            capture_output=True, text=True, check=False, cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        found = samples(folder / "perf.data")
        if len(found) > 9 and {each.pid for each in found}.issuperset(of):
            return found
    pytest.fail(run.stderr)


@contextmanager
def both(workloads: Workloads) -> Iterator[tuple[int, int]]:
    """Two processes that compute: one that is meant, and another."""
    with workloads.running("split") as meant, workloads.running("split") as other:
        yield meant, other


def test_a_process_and_no_other(workloads: Workloads, tmp_path: Path) -> None:
    with both(workloads) as (meant, _):
        assert {each.pid for each in recorded(tmp_path, "-p", str(meant))} == {meant}


def test_processes_that_are_not_asked_for_are_left_out(
    workloads: Workloads, tmp_path: Path
) -> None:
    with both(workloads) as pair, workloads.running("split"):
        found = recorded(tmp_path, "-p", ",".join(map(str, pair)))
    assert {each.pid for each in found} <= set(pair)


def test_a_thread_and_not_the_others_of_its_process(workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("wait", "three") as pid:
        (spinner,) = thread_ids(pid, "spinner")
        found = recorded(tmp_path, "-t", str(spinner))
        assert {(each.pid, each.tid) for each in found} == {(pid, spinner)}


CHILDREN = "echo ready; while :; do (i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done); done"
"""A shell with children that compute, one after the other."""


@contextmanager
def forking(**options: int) -> Iterator[int]:
    """The pid of such a shell."""
    with subprocess.Popen(["sh", "-c", CHILDREN], stdout=subprocess.PIPE, **options) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


def parents(path: Path) -> dict[int, int]:
    """Who forked whom while it was recorded."""
    data = path.read_bytes()
    records = PerfData(lambda at, size: data[at : at + size], len(data), str(path)).records()
    forks = [placed.record for placed in records if isinstance(placed.record, Fork)]
    return {fork.pid: fork.ppid for fork in forks}


def test_a_user_s_processes_and_their_children(workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("split") as other, forking(user=USER) as shell:
        found = {each.pid for each in recorded(tmp_path, "-u", str(USER))}
    forked = parents(tmp_path / "perf.data")
    assert found - {shell}
    # the child that ran when the recording began has no record of its fork
    assert all(pid == shell or forked.get(pid, shell) == shell for pid in found)
    assert other not in found


@pytest.mark.needs("cgroup2")
def test_a_cgroup_and_what_is_started_in_it(workloads: Workloads, tmp_path: Path) -> None:
    with cgroups.made() as cgroup, workloads.running("split") as other, forking() as shell:
        (cgroup / "cgroup.procs").write_text(str(shell))
        try:
            found = recorded(tmp_path, "-G", str(cgroup))
        finally:
            os.kill(shell, signal.SIGKILL)
            # the shell's last child may take a moment to end
            assert until(lambda: (cgroup / "cgroup.procs").read_text() == "")
    forked = parents(tmp_path / "perf.data")
    pids = {each.pid for each in found}
    assert pids - {shell}
    assert all(pid == shell or forked[pid] == shell for pid in pids)
    assert other not in pids


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")
def test_a_cpu_selects_the_samples_that_it_took(workloads: Workloads, tmp_path: Path) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    with both(workloads) as (meant, other):
        os.sched_setaffinity(meant, {first})
        os.sched_setaffinity(other, {second})
        found = recorded(tmp_path, "-C", str(first), of=(meant,))
    assert {each.cpu for each in found} == {first}
    assert other not in {each.pid for each in found}


def test_without_a_target_every_process_is_recorded(workloads: Workloads, tmp_path: Path) -> None:
    with both(workloads) as pair:
        assert recorded(tmp_path, "-a", of=pair)
        assert recorded(tmp_path, of=pair)  # the default without a command


REAPED = 0xFFFFFFFF
"""The process of a sample that was taken when it had no number any more (perf_event_pid())."""

SHORT = "i=0; while [ $i -lt 211 ]; do expr $i + 1 >/dev/null; i=$((i+1)); done; times >&2"
"""A shell with children of a millisecond, which says what CPU time it and they used."""


def seconds_of(times: str) -> float:
    """The sum of what the shell's `times` prints: 0m0.350000s, four times."""
    found = re.findall(r"(\d+)m([\d.]+)s", times)
    assert len(found) == 4, times
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in found)


@pytest.mark.needs("bpf")
@pytest.mark.parametrize("filters", [(), ("--filter", "ip > 0")])
def test_short_children_of_a_command_have_their_samples(
    tmp_path: Path, filters: tuple[str, ...]
) -> None:
    path = tmp_path / "perf.data"
    command = [sys.executable, "-m", "purebpf", "record", "-F", "997", "-o", str(path)]
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as other:
        try:
            ended = subprocess.run(
                [*command, "-e", "cpu-clock", *filters, "--", "sh", "-c", SHORT],
                capture_output=True, text=True, check=True, cwd=ROOT,
            )  # fmt: skip
        finally:
            other.kill()
    found = samples(path)
    forked = parents(path)
    pids = {sample.pid for sample in found}
    assert other.pid not in pids
    assert pids - {REAPED} <= {*forked, *forked.values()}
    # inherited events find half; a hypervisor's pauses count as CPU time, but take no samples
    assert len(found) > 0.7 * 997 * seconds_of(ended.stderr)
    assert "fewer samples" not in " ".join(ended.stderr.split())


@pytest.mark.needs("bpf")
def test_a_child_of_before_the_run_belongs_to_a_tree(tmp_path: Path) -> None:
    with forking() as shell:
        found = recorded(tmp_path, "-p", str(shell), "--tree")
        forked = parents(tmp_path / "perf.data")
    pids = {sample.pid for sample in found}
    assert pids - {shell}
    assert {forked.get(pid, shell) for pid in pids} <= {shell}


def test_without_a_program_short_children_lack_samples_and_the_recorder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tree, "follow", lambda *_, **__: None)
    work = "for i in 1 2 3 4 5 6 7; do /bin/true; done"
    assert main(["-F", "1", "-o", str(tmp_path / "data"), "--", "sh", "-c", work]) == 0
    said = " ".join(capfd.readouterr().err.split())
    assert "8 processes and threads, and fewer samples" in said
