"""The summary as a user meets it: arguments in; text, JSON, CSV and statuses out."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import ROOT, Workloads
from tests.support.host.privilege import reachable

pytestmark = pytest.mark.needs("bpf", "gcc")

LOSS_LINE = re.compile(
    r"^loss: open_at_start=\d+ in_flight=\d+ exits=\d+ died=\d+ unpaired=\d+ tid_changed=\d+ "
    r"unnamed=\d+ "
    r"unreturned=\d+ states_full=\d+ rows_full=\d+ errors_full=\d+ histograms_full=\d+ "
    r"names_full=\d+ follow_full=\d+ recursion_misses=\d+ switches_missed=\d+ "
    r"clock_backwards=\d+ outside_namespace=\d+$",
    re.MULTILINE,
)
TIME = r" +\d+(?:\.\d+)?(?: [num]?s)?"
ROW = re.compile(rf"^ +(\S+) +(\d+) +(\d+){4 * TIME} ", re.MULTILINE)
COMMAND = [sys.executable, "-m", "purebpf", "summary", "-v"]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
        **options,
    )


def counts(text: str) -> dict[str, tuple[int, int]]:
    """Calls and errors by name, of a table in either layout."""
    return {row[1]: (int(row[2]), int(row[3])) for row in ROW.finditer(text)}


def test_a_command_is_counted_from_its_execve(workloads: Workloads) -> None:
    result = run("--errno-summary", "--", workloads.path("syscalls"), "failures", "2", "3", "5")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("\n Summary of events:\n\n total, ")
    found = counts(result.stdout)
    assert found["execve"] == (1, 0)
    assert found["dup"] == (3, 3)
    assert found["syscall:9999"] == (5, 5)
    assert "\t\t\t\tEBADF: 3\n" in result.stdout
    loss = LOSS_LINE.search(result.stderr)
    assert loss
    assert "open_at_start=0 in_flight=0 exits=1 " in loss[0]


@pytest.mark.needs("strace")
def test_the_table_is_that_of_strace(workloads: Workloads, tmp_path: Path) -> None:
    command = [workloads.path("syscalls"), "forks", "5"]
    summary = tmp_path / "strace"
    subprocess.run(["strace", "-f", "-c", "-o", str(summary), *command], check=True)
    theirs = {}
    for line in summary.read_text().splitlines()[2:-2]:
        fields = line.split()
        theirs[fields[-1]] = (int(fields[3]), int(fields[4]) if len(fields) == 6 else 0)
    ours = counts(run("--", *command).stdout)
    # exit_group does not return; what a child's end interrupts, strace being slow, is made again
    volatile = {"exit_group", "wait4", "restart_syscall", "clone"}
    assert ours["clone"] == (theirs["clone"][0] - theirs["clone"][1], 0)
    assert {name: row for name, row in ours.items() if name not in volatile} == {
        name: row for name, row in theirs.items() if name not in volatile
    }


@pytest.mark.alone  # a BPF program at the tracepoint would hide its passes
@pytest.mark.needs("perf_trace")
def test_the_table_is_that_of_perf(workloads: Workloads) -> None:
    command = [workloads.path("syscalls"), "failures", "7", "11", "0"]
    done = subprocess.run(
        ["perf", "trace", "-s", "--", *command], capture_output=True, text=True, check=False
    )
    theirs = counts(done.stderr or done.stdout)
    assert theirs, done.stderr
    result = run("--layout", "perf", "--", *command)
    assert counts(result.stdout) == theirs
    head = re.compile(r"^   syscall .*\n.*\n.*\n", re.MULTILINE)
    ours, perfs = head.search(result.stdout), head.search(done.stderr or done.stdout)
    assert ours
    assert perfs
    assert ours[0] == perfs[0]


def test_json_of_a_command(workloads: Workloads, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    result = run(
        *("--mode", "process", "--format", "json", "-o", str(target), "--"),
        *(workloads.path("syscalls"), "calls", "23"),
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    found = json.loads(target.read_text())
    (group,) = found["groups"]
    assert group["group"]["comm"] == "syscalls"
    (row,) = [row for row in group["rows"] if row["syscall"] == "getppid"]
    assert row["calls"] == 23
    assert row["min_ns"] <= row["p50_ns"] <= row["p95_ns"] <= row["p99_ns"] <= row["max_ns"]
    assert row["min_ns"] <= row["avg_ns"] <= row["max_ns"]
    assert found["mode"] == "process"
    assert found["duration_ns"] > 0
    assert found["cost"].keys() == {"run_time_ns", "run_cnt"}


@pytest.fixture
def busy() -> Iterator[None]:
    """Something that makes calls all the time; an idle machine makes none for seconds."""
    with subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.mark.any_kernel
@pytest.mark.usefixtures("busy")
def test_csv_intervals_have_one_header() -> None:
    result = run("--format", "csv", "-i", "0.3", "0.8")
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert {row["interval"] for row in rows} == {"0", "1", "2"}
    assert all(int(row["calls"]) > 0 for row in rows)


@pytest.mark.any_kernel
def test_json_intervals_are_lines() -> None:
    result = run("--format", "json", "-i", "0.3", "0.8")
    found = tables(result.stdout)
    assert [table["interval"] for table in found] == [0, 1, 2]


@pytest.mark.any_kernel
@pytest.mark.usefixtures("busy")
def test_intervals_too_short_to_be_shown_are_shown_together() -> None:
    result = run("--format", "json", "-i", "1e-9", "0.3")
    assert result.returncode == 0, result.stderr
    found = tables(result.stdout)
    assert [table["interval"] for table in found] == list(range(len(found)))
    assert sum(table["duration_ns"] for table in found) >= 300_000_000


def tables(text: str) -> list[dict[str, Any]]:
    """The JSON of each interval, of which none is missing."""
    found = [json.loads(line) for line in text.splitlines()]
    assert found[0]["started_ns"] == 0
    assert all(
        before["started_ns"] + before["duration_ns"] == after["started_ns"]
        for before, after in pairwise(found)
    )
    return found


@pytest.mark.any_kernel
def test_text_intervals_have_a_clock() -> None:
    result = run("-i", "0.3", "-T", "1", "0.5")
    clock = re.compile(r"^\[\d\d:\d\d:\d\d\]\n Summary of events:\n", re.MULTILINE)
    assert len(clock.findall(result.stdout)) == 2


@contextmanager
def counting(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=pipe, stderr=pipe, text=True, cwd=ROOT
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "Counting system calls... Hit Ctrl-C to end.\n"
        yield process


@pytest.mark.any_kernel
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_prints(number: signal.Signals) -> None:
    with counting() as process:
        process.send_signal(number)
        output, errors = process.communicate()
    assert process.returncode == 0
    assert " Summary of events:" in output
    assert LOSS_LINE.search(errors)


@pytest.mark.any_kernel
def test_a_closed_pipe_is_silent() -> None:
    with counting() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
    assert process.returncode == 0
    assert LOSS_LINE.search(errors)
    assert "Broken" not in errors
    assert "Traceback" not in errors


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (["/nonexistent/program"], 127, "ENOENT"),
        (["/etc/passwd"], 126, "EACCES"),
        (["sh", "-c", "exit 7"], 7, ""),
        (["sh", "-c", "kill -9 $$"], 137, ""),
    ],
)
def test_the_status_is_the_command_s(command: list[str], status: int, said: str) -> None:
    result = run("--", *command)
    assert result.returncode == status
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-p", "4194303"], "no process or thread has ID 4194303"),
        (["-t", "4194303"], "no process or thread has ID 4194303"),
        (["-G", "/nonexistent"], "cgroup directory /nonexistent"),
        (["-G", "/tmp"], "the path is not a cgroup v2 directory"),
    ],
)
def test_a_missing_target_is_one_paragraph(arguments: list[str], said: str, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    command = [] if arguments[0] != "-G" else ["--", "touch", str(witness)]
    result = run(*arguments, *command)
    assert result.returncode == 1
    assert said in " ".join(result.stderr.split())
    assert result.stderr.startswith("purebpf summary: ")
    assert result.stdout == ""
    assert not witness.exists()


@pytest.mark.needs("setpriv", "mount_namespace")
def test_without_privilege_the_command_is_not_started(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    tmp_path.chmod(0o777)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    result = subprocess.run(
        [*reachable(), *nobody, *COMMAND, "--", "touch", str(witness)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 1
    assert "sudo" in result.stderr
    assert not witness.exists()


@pytest.mark.any_kernel
def test_strict_tells_loss_by_the_status(workloads: Workloads) -> None:
    command = ["--", workloads.path("syscalls"), "threads", "9"]
    assert run("--strict", "--mode", "thread", *command).returncode == 0
    result = run("--strict", "--mode", "thread", "--map-entries", "5", *command)
    assert result.returncode == 3
    assert "rows_full: " in result.stderr
    assert "Raise --map-entries" in result.stderr


def test_a_fallback_is_reported(workloads: Workloads) -> None:
    result = run("--hook", "raw_tp", "--", workloads.path("syscalls"), "calls", "23")
    assert counts(result.stdout)["getppid"] == (23, 0)
