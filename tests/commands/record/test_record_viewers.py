"""What other viewers than perf make of the file: they read all of its samples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT, Workloads
from tests.support import probe_machine
from tests.support.oracles import firefox_profiler

pytestmark = pytest.mark.needs("perf_event", "gcc")


def recorded(workloads: Workloads, folder: Path) -> int:
    """Write perf.data, and how many samples it has."""
    with workloads.running("split") as pid:
        command = [sys.executable, "-m", "purebpf", "record", "-v", "-g", "-e", "cpu-clock:u"]
        subprocess.run(
            [*command, "-o", "perf.data", "-p", str(pid), "3"], check=True, cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        )  # fmt: skip
    from purebpf.wire.perf_data_reader import PerfData
    from purebpf.wire.perf_records import Sample

    data = (folder / "perf.data").read_bytes()
    file = PerfData(lambda at, size: data[at : at + size], len(data), "perf.data")
    return sum(isinstance(each.record, Sample) for each in file.records())


@pytest.mark.needs("hotspot")
def test_hotspot_parses_every_sample_and_names_it(workloads: Workloads, tmp_path: Path) -> None:
    count = recorded(workloads, tmp_path)
    parser = [str(probe_machine.hotspot_parser()), "--input", "perf.data"]
    done = subprocess.run(
        [*parser, "--print-stats"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    found = re.search(r"^samples: (\d+)$", done.stderr + done.stdout, re.MULTILINE)
    assert found is not None
    assert int(found[1]) == count > 0
    assert "samples time violations: 0" in done.stderr + done.stdout
    subprocess.run([*parser, "--output", "out"], capture_output=True, check=True, cwd=tmp_path)
    assert b"spend_seventy" in (tmp_path / "out").read_bytes()


@pytest.mark.any_kernel
@pytest.mark.needs("perf", "profiler-cli")
def test_firefox_profiler_reads_what_perf_script_makes_of_it(
    workloads: Workloads, tmp_path: Path
) -> None:
    count = recorded(workloads, tmp_path)
    done = subprocess.run(
        ["perf", "script", "-F", "+pid"], capture_output=True, check=True, cwd=tmp_path
    )
    script = tmp_path / "perf.txt"
    script.write_bytes(done.stdout)
    with firefox_profiler.opened(script, tmp_path) as viewer:
        total, found = viewer.samples()
    assert total == count > 0
    # Where a function has not pushed its frame pointer yet, the walk passes over its caller.
    assert 0.99 * count <= found["main"][1] <= count
    assert found["spend_seventy"][1] > found["spend_thirty"][1] > 0
