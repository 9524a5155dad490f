"""What is recorded is what perf(1) reads, and what happened."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.tools.record import EventOption, Recorder, RecordOptions
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Comm, Sample
from tests.commands.conftest import ROOT, Workloads

pytestmark = pytest.mark.needs("perf_event", "gcc")

SLOW_HOST = os.environ.get("PUREBPF_SLOW_HOST") == "1"
SECONDS = "3" if SLOW_HOST else "1"
FAULTS = 509 if SLOW_HOST else 5003

Record = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Run `purebpf record -o perf.data` with arguments, in a directory of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "purebpf", "record", "-v", "-o", "perf.data", *arguments]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environment,
            timeout=240,  # an emulated machine takes its time
        )

    return run


def opened(path: Path) -> PerfData:
    data = path.read_bytes()
    return PerfData(lambda at, size: data[at : at + size], len(data), str(path))


def perf(tmp_path: Path, *arguments: str) -> str:
    """What perf says about the file; a warning fails the test."""
    run = subprocess.run(
        ["perf", *arguments, "-i", "perf.data"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=60,
    )
    complaints = [
        line for line in run.stderr.splitlines() if line.strip() and "debuginfod" not in line
    ]
    assert (run.returncode, complaints) == (0, [])
    return run.stdout


def said(run: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The words of the loss line."""
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("loss:")]
    return dict(word.split("=") for word in line.removeprefix("loss: ").split())


@pytest.mark.needs("perf")
def test_perf_reads_a_split_as_it_is(workloads: Workloads, record: Record, tmp_path: Path) -> None:
    frequency = "997" if SLOW_HOST else "4999"
    with workloads.running("split") as pid:
        run = record("-g", "-e", "cpu-clock", "-F", frequency, "-p", str(pid), SECONDS)
    assert run.returncode == 0, run.stderr
    samples = [placed.record for placed in opened(tmp_path / "perf.data").records()]
    ours = [each for each in samples if isinstance(each, Sample)]
    assert int(said(run)["seen"]) == len(ours)
    assert len(ours) > 30, run.stderr
    script = perf(tmp_path, "script", "-F", "comm,pid,event,ip,sym")
    assert script.count("cpu-clock:") == len(ours)
    stats = perf(tmp_path, "report", "--stats")
    assert re.findall(r"SAMPLE events: +(\d+)", stats) == [str(len(ours))] * 2
    report = perf(tmp_path, "report", "--stdio", "--no-children", "-g", "none")
    shares = {name: float(share) for share, name in re.findall(r"([\d.]+)%.* (\S+) *\n", report)}
    seventy, thirty = shares["spend_seventy"], shares["spend_thirty"]
    deviation = 100 * math.sqrt(0.7 * 0.3 / len(ours))
    assert 100 * seventy / (seventy + thirty) == pytest.approx(70, abs=2 + 4 * deviation)
    callers = re.findall(r"spend_(?:seventy|thirty)\n\s+[0-9a-f]+ (\S+)", script)
    # where a function has just begun, its caller's frame is not yet behind it
    assert callers.count("main") >= 0.8 * len(callers) > 0


@pytest.mark.needs("perf")
def test_perf_agrees_about_the_file(workloads: Workloads, record: Record, tmp_path: Path) -> None:
    run = record("-e", "cpu-clock,page-faults:u", "-c", "1000003", "--", workloads.path("brief"))
    assert run.returncode == 0, run.stderr
    assert perf(tmp_path, "evlist").split() == ["cpu-clock", "page-faults:u"]
    build_ids = perf(tmp_path, "buildid-list")
    assert "[kernel.kallsyms]" in build_ids
    notes = subprocess.run(
        ["readelf", "-n", workloads.path("brief")], capture_output=True, text=True, check=True
    ).stdout
    number = re.search(r"Build ID: (\w+)", notes)
    assert number is not None
    assert f"{number[1]} {workloads.path('brief')}" in build_ids
    header = perf(tmp_path, "report", "--header-only")
    assert f"os release : {os.uname().release}" in header
    assert f"hostname : {os.uname().nodename}" in header
    assert workloads.path("brief") in header


@pytest.mark.needs("perf")
def test_kernel_addresses_are_named_by_perf(
    workloads: Workloads, record: Record, tmp_path: Path
) -> None:
    with workloads.running("calls") as pid:
        record("-g", "-e", "cpu-clock", "-p", str(pid), SECONDS)
    script = perf(tmp_path, "script", "-F", "ip,sym,dso")
    kernel = [line for line in script.splitlines() if "[kernel.kallsyms]" in line]
    assert len(kernel) > 10
    named = [line for line in kernel if "[unknown]" not in line]
    assert len(named) >= 0.99 * len(kernel)
    assert any("ksys_read" in line or "vfs_read" in line for line in named)


def test_every_page_fault_is_one_sample(record: Record, tmp_path: Path) -> None:
    code = (
        f"import mmap; m = mmap.mmap(-1, {FAULTS} * 4096); m.madvise(15) if hasattr(m, 'madvise') "
        f"else None\nfor at in range(0, {FAULTS} * 4096, 4096): m[at] = 1"
    )
    counts = []
    for program in (code, "import mmap"):
        run = record("-e", "page-faults:u", "-c", "1", "-d", "--", sys.executable, "-c", program)
        assert run.returncode == 0, run.stderr
        words = said(run)
        assert words["expected"] == words["seen"]
        assert words["ring_lost"] == "0"
        counts.append(int(words["seen"]))
    assert counts[0] - counts[1] == pytest.approx(FAULTS, abs=FAULTS // 20)
    file = opened(tmp_path / "perf.data")
    found = [placed.record for placed in file.records() if isinstance(placed.record, Sample)]
    assert all(sample.addr for sample in found)
    assert [sample.time for sample in found] == sorted(sample.time for sample in found)


def test_every_tenth_page_fault_is_one_sample(record: Record, tmp_path: Path) -> None:
    code = (
        f"import mmap; m = mmap.mmap(-1, {FAULTS} * 4096)\n"
        f"for at in range({FAULTS}): m[at << 12] = 1"
    )
    run = record("-e", "page-faults:u", "-c", "10", "--", sys.executable, "-c", code)
    assert run.returncode == 0, run.stderr
    words = said(run)
    assert words["expected"] == words["seen"]
    file = opened(tmp_path / "perf.data")
    found = [placed.record for placed in file.records() if isinstance(placed.record, Sample)]
    assert len(found) == int(words["seen"]) < FAULTS
    assert [event.period for event in file.events] == [10]
    report = [sys.executable, "-m", "purebpf", "report", "-i", str(tmp_path / "perf.data")]
    folded = subprocess.run(
        [*report, "--weight", "period", "--format", "folded"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout  # fmt: skip
    assert sum(int(line.split()[-1]) for line in folded.splitlines()) == 10 * len(found)


def test_children_are_recorded_with_their_names(
    workloads: Workloads, record: Record, tmp_path: Path
) -> None:
    brief = workloads.path("brief")
    run = record("-e", "cpu-clock", "-F", "997", "--", "sh", "-c", f"{brief}; {brief}; {brief}")
    assert run.returncode == 0, run.stderr
    records = [placed.record for placed in opened(tmp_path / "perf.data").records()]
    comms = Counter(each.comm for each in records if isinstance(each, Comm) and each.exec)
    assert comms["brief"] == 3
    pids = {each.pid for each in records if isinstance(each, Comm) and each.comm == "brief"}
    sampled = {each.pid for each in records if isinstance(each, Sample)}
    assert pids <= sampled


@pytest.mark.alone  # a BPF program at the tracepoint would hide its passes
@pytest.mark.needs("perf", "tracefs")
def test_tracepoints_come_with_their_formats(record: Record, tmp_path: Path) -> None:
    run = record("-e", "sched:sched_process_exec", "--", "true")
    assert run.returncode == 0, run.stderr
    script = perf(tmp_path, "script", "-F", "trace:comm,event,trace")
    assert re.search(r"true sched:sched_process_exec: filename=\S*true pid=\d+", script)


def test_every_event_has_its_own_samples(workloads: Workloads, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    wanted = (EventOption("cpu-clock"), EventOption("task-clock"))
    with (
        workloads.running("split") as pid,
        Recorder(
            RecordOptions(events=wanted, frequency=499, pids=(pid,), output=str(path))
        ) as recorder,
    ):
        time.sleep(1)
        found = recorder.stop()
    file = opened(path)
    each = Counter(
        file.events[placed.event].name
        for placed in file.records()
        if isinstance(placed.record, Sample)
    )
    assert set(each) == {"cpu-clock", "task-clock"}
    assert each.total() == found.samples


def test_sigterm_ends_it_well_and_the_file_is_whole(workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("split") as pid:
        process = subprocess.Popen(
            [sys.executable, "-m", "purebpf", "record", "-v", "-p", str(pid), "-o", "perf.data"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert "Hit Ctrl-C" in process.stderr.readline()
        assert not (tmp_path / "perf.data").exists()
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert "loss:" in errors
    assert opened(tmp_path / "perf.data").events


@pytest.mark.any_kernel
def test_it_ends_with_its_target(workloads: Workloads, record: Record) -> None:
    with subprocess.Popen(["sleep", "20" if SLOW_HOST else "5"]) as sleeping:
        run = record("-p", str(sleeping.pid))
    assert run.returncode == 0, run.stderr


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["-e", "cycels", "1"], 2, "did you mean cycles"),
        (["-e", "nothing:here", "1"], 2, "unknown tracepoint nothing:here"),
        (["-p", "4194304", "1"], 1, "no process or thread has ID 4194304"),
        (["-G", "/nowhere", "1"], 1, "cgroup directory /nowhere does not exist"),
        (["-F", "99999999", "-e", "cpu-clock", "1"], 1, "kernel.perf_event_max_sample_rate"),
        (["--", "no-such-program"], 127, "no-such-program"),
        (["-e", "page-fautls", "1"], 2, "did you mean page-faults"),
        (["-c", "99999999999999999999", "1"], 2, "is too large (maximum 9223372036854775807)"),
        (["-p", "99999999999999999999", "1"], 2, "invalid PID"),
        (["--filter", "ip < 18446744073709551616", "1"], 2, "does not fit in 64 bits"),
        (["-e", "r1ffffffffffffffff", "1"], 2, "unknown event 'r1ffffffffffffffff'"),
        (["--filter", "cpu = 1", "1"], 2, "unknown operator '='; write '=='"),
        (["--filter", "period > 1 || code_pgsz == 1", "1"], 2, "(PERF_SAMPLE_CODE_PAGE_SIZE): add"),
        *(
            (["-e", "cpu-clock", option, "--filter", term, "1"], 2, "never have a value for")
            for option, term in (
                *(("-W", "weight > 1"), ("-d", "mem_op == load"), ("-d", "addr > 0")),
                *(("--transaction", "txn == 0"), ("--phys-data", "pid > 0 || phys_addr == 0")),
            )
        ),
    ],
)
def test_mistakes_leave_no_file(
    record: Record, tmp_path: Path, arguments: list[str], status: int, words: str
) -> None:
    run = record(*arguments)
    assert (run.returncode, os.listdir(tmp_path)) == (status, []), run.stderr
    assert words in " ".join(run.stderr.split())


@pytest.mark.any_kernel
def test_the_exit_status_is_the_commands(record: Record) -> None:
    assert record("--", "sh", "-c", "exit 7").returncode == 7
