"""`report -i -` reads standard input: a file, and a pipe that cannot seek."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.results.formats import perf_data
from tests.commands.conftest import ROOT
from tests.support.builders import profiles

COMMAND = [sys.executable, "-m", "purebpf", "report", "-i"]

pytestmark = pytest.mark.any_kernel


def folded(source: str, **stdin: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*COMMAND, source, "--format", "folded"],
        capture_output=True, check=False, cwd=ROOT, timeout=60, **stdin,
    )  # fmt: skip


def test_a_pipe_and_a_file_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    data = perf_data.document(profiles.example())
    path.write_bytes(data)
    named = folded(str(path))
    assert named.returncode == 0, named.stderr
    assert b"kworker/0:1 2\n" in named.stdout
    assert folded("-", input=data).stdout == named.stdout
    with path.open("rb") as file:
        assert folded("-", stdin=file).stdout == named.stdout


@pytest.mark.alone  # a BPF program at the tracepoint would hide its passes
@pytest.mark.nightly
@pytest.mark.needs("perf", "perf_event", "tracefs")
def test_what_perf_writes_to_a_pipe_has_the_samples_that_perf_sees(tmp_path: Path) -> None:
    piped = tmp_path / "piped.data"
    events = ("-c", "1000003", "-e", "task-clock:u", "-c", "1", "-e", "sched:sched_process_exec")
    spin = ("sh", "-c", "i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done")
    with piped.open("wb") as file:
        subprocess.run(
            ["perf", "record", "-g", "-o", "-", *events, *spin],
            stdout=file, stderr=subprocess.PIPE, check=True,
        )  # fmt: skip
    with piped.open("rb") as stream:
        ours = folded("-", stdin=stream)
    assert ours.returncode == 0, ours.stderr
    assert b"also in the file: 1 sample of sched:sched_process_exec" in ours.stderr
    script = ["perf", "script", "-i", str(piped), "-F", "comm,event"]
    listed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    counts = [int(line.rsplit(maxsplit=1)[1]) for line in ours.stdout.decode().splitlines()]
    assert sum(counts) == listed.count("task-clock:u:") > 0


def test_what_is_not_perf_data_is_named_standard_input() -> None:
    failed = folded("-", input=b"no perf.data")
    assert failed.returncode == 1
    assert failed.stderr.startswith(b"purebpf report: standard input: ")


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "perf.data")
    failed = folded(str(tmp_path / "perf.data"))
    assert failed.returncode == 1
    assert b"purebpf report -i - <" in b" ".join(failed.stderr.split())
