"""`purebpf report` on files of purebpf.tools.record and of perf record."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT, Workloads

SLOW_HOST = os.environ.get("PUREBPF_SLOW_HOST") == "1"

Python = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def python(tmp_path: Path) -> Python:
    """Run `python -m purebpf.NAME` in a directory of its own."""

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "purebpf", name, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            timeout=120,
        )

    return run


def leaves(folded: str) -> Counter[str]:
    """The weight of each innermost function."""
    found: Counter[str] = Counter()
    for line in folded.splitlines():
        path, _, weight = line.rpartition(" ")
        found[path.rpartition(";")[2]] += int(weight)
    return found


def perf_leaves(directory: Path) -> Counter[str]:
    """The same as perf script has it, which prints the leaf of each sample first."""
    script = subprocess.run(
        ["perf", "script", "-i", "perf.data", "-F", "comm,ip,sym"],
        capture_output=True,
        text=True,
        check=True,
        cwd=directory,
    ).stdout
    return Counter(re.findall(r"^\S.*\n\s+[0-9a-f]+ (.+)$", script, re.MULTILINE))


@pytest.mark.needs("perf_event", "gcc", "perf")
@pytest.mark.parametrize("recorder", ["ours", pytest.param("perf", marks=pytest.mark.any_kernel)])
def test_it_agrees_with_perf_about_every_sample(
    recorder: str, workloads: Workloads, python: Python, tmp_path: Path
) -> None:
    frequency = "499" if SLOW_HOST else "4999"
    with workloads.running("split") as pid:
        options = ["-g", "-e", "cpu-clock", "-F", frequency, "-p", str(pid), "-o", "perf.data"]
        if recorder == "ours":
            python("record", *options, "1")
        else:
            subprocess.run(
                ["perf", "record", "-q", *options, "--", "sleep", "1"],
                check=True,
                cwd=tmp_path,
                capture_output=True,
            )
    run = python("report", "--format", "folded")
    assert run.returncode == 0, run.stderr
    ours, theirs = leaves(run.stdout), perf_leaves(tmp_path)
    assert ours.total() == theirs.total() > 30
    for name in ("spend_seventy", "spend_thirty"):
        assert ours[name] == theirs[name]
    seventy, thirty = ours["spend_seventy"], ours["spend_thirty"]
    deviation = 100 * math.sqrt(0.7 * 0.3 / (seventy + thirty))
    assert 100 * seventy / (seventy + thirty) == pytest.approx(70, abs=2 + 4 * deviation)
    assert re.search(r"^split;.*main;spend_seventy \d+$", run.stdout, re.MULTILINE)


@pytest.mark.needs("perf_event", "gcc")
def test_processes_that_are_gone_are_named(
    workloads: Workloads, python: Python, tmp_path: Path
) -> None:
    brief = workloads.path("brief")
    python("record", "-g", "-e", "cpu-clock", "-F", "999", "--", "sh", "-c", f"{brief}; {brief}")
    run = python("report", "--format", "json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["about"]["event"] == "cpu-clock"
    assert found["about"]["hostname"] == os.uname().nodename
    burning = {number for number, frame in enumerate(found["frames"]) if "burn" in str(frame)}
    pids = {stack["pid"] for stack in found["stacks"] if burning & {*(stack["user"] or ())}}
    assert len(pids) == 2


@pytest.mark.any_kernel
@pytest.mark.needs("perf_event", "gcc")
def test_events_are_separate_and_their_periods_add_up(
    workloads: Workloads, python: Python, tmp_path: Path
) -> None:
    python("record", "-e", "cpu-clock,page-faults", "-c", "100000", "--", workloads.path("brief"))
    samples = python("report", "--format", "json")
    periods = python("report", "--format", "json", "--weight", "period")
    totals = [json.loads(run.stdout)["total"] for run in (samples, periods)]
    assert totals[0] * 100_000 == totals[1] > 0
    wrong = python("report", "-e", "cycles")
    assert wrong.returncode == 2
    assert "it has cpu-clock, page-faults" in " ".join(wrong.stderr.split())


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "open(2) failed with ENOENT"),
        (b"", "not a perf.data file"),
        (b"\x7fELF" + bytes(500), "not a perf.data file"),
        (b"PERFILE2" + bytes(10), "the file ends after 18 bytes"),
    ],
)
def test_other_files_are_refused(
    data: bytes | None, words: str, python: Python, tmp_path: Path
) -> None:
    if data is not None:
        (tmp_path / "perf.data").write_bytes(data)
    run = python("report")
    assert run.returncode == 1
    assert words in " ".join(run.stderr.split())
    assert run.stdout == ""


@pytest.mark.any_kernel
@pytest.mark.needs("perf_event")
def test_a_file_that_was_cut_off_says_so(python: Python, tmp_path: Path) -> None:
    python("record", "-e", "page-faults", "-c", "1", "--", "true")
    path = tmp_path / "perf.data"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    run = python("report")
    assert run.returncode == 1
    assert "the file has" in " ".join(run.stderr.split())


@pytest.mark.needs("bpf", "perf_event", "gcc")
def test_what_a_filter_rejects_is_in_the_file(
    workloads: Workloads, python: Python, tmp_path: Path
) -> None:
    with workloads.running("split") as pid:
        options = ["-v", "-e", "cpu-clock", "-F", "997", "--sample-cpu", "-p", str(pid)]
        run = python("record", *options, "--filter", "cpu == 0", "1")
    assert run.returncode == 0, run.stderr
    rejected = int(re.findall(r"rejected=(\d+)", run.stderr)[0])
    report = python("report")
    assert report.returncode == 0, report.stderr
    if rejected:
        assert f"rejected by filters: {rejected} samples" in report.stderr
    else:
        assert "rejected by filters" not in report.stderr
