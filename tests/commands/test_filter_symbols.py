"""`symbol ==` in a program that runs: the samples of one function, as nm knows it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter import FilterError, parse
from purebpf.kernel.filter_names import MachineNames
from purebpf.kernel.perf_event import PerfEvent
from purebpf.kernel.sample_filter import SampleFilter
from tests.commands.conftest import Workloads

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf", "gcc", "nm")

WHERE = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID
ENOUGH = 300
PATIENCE_S = 30


def addresses(path: str, pid: int, name: str) -> range:
    """Where a function of a running program is, by nm and /proc/PID/maps."""
    shown = subprocess.run(["nm", "-S", path], check=True, capture_output=True, text=True).stdout
    (row,) = (line.split() for line in shown.splitlines() if line.endswith(f" {name}"))
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    base = int(next(line for line in maps if line.endswith(path)).split("-")[0], 16)
    return range(base + int(row[0], 16), base + int(row[0], 16) + int(row[1], 16))


@pytest.mark.parametrize(("name", "share"), [("spend_seventy", 0.7), ("spend_thirty", 0.3)])
def test_the_samples_of_one_function(workloads: Workloads, name: str, share: float) -> None:
    with (
        workloads.running("split") as pid,
        SampleFilter(parse(f"symbol == {name}"), WHERE, names=MachineNames([pid])) as chosen,
        PerfEvent.sampling(
            frequency=2000, event="cpu-clock", pid=pid, sample_type=WHERE, disabled=1,
            exclude_kernel=1,
        ) as event,
    ):  # fmt: skip
        event.map_ring(64)
        chosen.attach(event)
        event.enable()
        deadline = time.monotonic() + PATIENCE_S
        while chosen.counts().seen < ENOUGH and time.monotonic() < deadline:
            time.sleep(0.05)
        event.disable()
        found = {each.ip for each in event.records()}
        counts = chosen.counts()
        place = addresses(workloads.path("split"), pid, name)
    assert counts.seen >= ENOUGH
    assert found
    assert all(ip in place for ip in found)
    assert share - 0.15 < counts.passed / counts.seen < share + 0.15


def test_a_function_that_nobody_has_is_shown(workloads: Workloads) -> None:
    with workloads.running("split") as pid, pytest.raises(FilterError) as caught:
        SampleFilter(parse("symbol == spend_fifty"), WHERE, names=MachineNames([pid]))
    assert f"no function 'spend_fifty' in /proc/kallsyms, process {pid}" in str(caught.value)
    assert caught.value.column == len("symbol == s")
