"""Other tools see the same: offcputime, and perf in the file that is written for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.tools.offcpu import OffCpu, OffCpuOptions
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Comm, Sample
from tests.commands.conftest import ROOT, Workloads, thread_ids

pytestmark = pytest.mark.needs("bpf", "gcc")


def recorded(file: Path, *arguments: str) -> list[object]:
    """The records of a perf.data file that the command wrote."""
    command = [sys.executable, "-m", "purebpf", "offcpu", "--format", "perf.data", "-o", str(file)]
    subprocess.run([*command, *arguments], check=True, capture_output=True, cwd=ROOT)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        data = PerfData(
            lambda offset, size: os.pread(descriptor, size, offset), file.stat().st_size
        )
        assert [event.name for event in data.events] == ["offcpu-time"]
        return [placed.record for placed in data.records()]
    finally:
        os.close(descriptor)


def test_long_waits_are_samples_in_the_order_of_time(workloads: Workloads, tmp_path: Path) -> None:
    records = recorded(
        tmp_path / "data", "--thresh", "5", "--", workloads.path("wait"), "convoy", "2", "3"
    )
    samples = [record for record in records if isinstance(record, Sample)]
    assert {record.comm for record in records if isinstance(record, Comm)} >= {"wait", "holder"}
    times = [sample.time for sample in samples]
    assert times == sorted(times)
    (pid,) = {sample.pid for sample in samples}
    tids = {sample.tid for sample in samples}
    assert len(tids) > 1  # pid and tid are not the same, nor each in the place of the other
    assert pid not in tids - {pid}
    long = [sample for sample in samples if sample.time < times[-1]]
    assert long
    assert all(sample.period >= 5_000_000 for sample in long)
    assert all(sample.callchain[0] == (1 << 64) - 128 for sample in long)  # PERF_CONTEXT_KERNEL


@pytest.mark.needs("perf")
def test_perf_reports_the_file(tmp_path: Path) -> None:
    file = tmp_path / "data"
    recorded(file, "--", "sleep", "1")
    done = subprocess.run(
        ["perf", "script", "-i", str(file), "-F", "comm,pid,tid,period,event,ip,sym"],
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r"^sleep +(\d+)/(\d+) +(\d+) offcpu-time:", done.stdout, re.MULTILINE)
    assert found, done.stdout
    assert found[1] == found[2]
    assert int(found[3]) >= 990_000_000
    assert "nanosleep" in done.stdout


@pytest.mark.needs("libbpf-tools")
def test_offcputime_sees_as_much(workloads: Workloads) -> None:
    with (
        workloads.running("wait", "naps", "0", "5000") as pid,
        OffCpu(OffCpuOptions(pids=(pid,))) as waiting,
    ):
        peer = subprocess.run(
            ["offcputime", "-p", str(pid), "2"], capture_output=True, text=True, check=False
        )
        found = waiting.stop()
    theirs_us = sum(int(number) for number in re.findall(r"^ {8}(\d+)$", peer.stdout, re.MULTILINE))
    if not theirs_us:
        pytest.skip(f"offcputime found nothing: {peer.stderr[:200]}")
    elapsed_s = found.about["elapsed_s"]
    assert isinstance(elapsed_s, float)
    # theirs takes a moment to begin, and counts no time that was open at its ends
    assert found.total / 1e9 / elapsed_s == pytest.approx(theirs_us / 1e6 / 2, abs=0.15)


@pytest.mark.any_kernel
def test_json_and_perf_data_are_the_same_waits(workloads: Workloads, tmp_path: Path) -> None:
    with workloads.running("wait", "three") as pid:
        samples = [
            record
            for record in recorded(tmp_path / "data", "-p", str(pid), "0.3")
            if isinstance(record, Sample)
        ]
        command = [sys.executable, "-m", "purebpf", "offcpu", "--format", "json", "-p", str(pid)]
        done = subprocess.run(
            [*command, "0.3"], check=True, capture_output=True, text=True, cwd=ROOT
        )
        sleepers = {*thread_ids(pid, "reader"), *thread_ids(pid, "wait")}
    assert sleepers <= {row["tid"] for row in json.loads(done.stdout)["stacks"]}
    assert sleepers <= {sample.tid for sample in samples}
