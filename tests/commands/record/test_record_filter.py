"""Filters of the recorder as a user types them, by what perf's own test of its filters asks for.

tools/perf/tests/shell/record_bpf_filter.sh: a basic filter, samples that lack a field, a group with
one that is lacking, and two events; what it does as an unprivileged user is in test_record_pinned.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Sample
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("perf_event")

KERNEL = 0xFFFFFFFF00000000
FAULTING = "import mmap; m = mmap.mmap(-1, 1 << 20)\nfor at in range(256): m[at << 12] = 1"
COMMAND = ("--", sys.executable, "-c", FAULTING)


def record(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Record every fault of a program, by the events and filters of `arguments`."""
    command = [sys.executable, "-m", "purebpf", "record", "-v", "-o", "perf.data", "-c", "1"]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def sampled(folder: Path) -> dict[str, list[Sample]]:
    """The samples, by their events."""
    data = (folder / "perf.data").read_bytes()
    file = PerfData(lambda at, size: data[at : at + size], len(data), "perf.data")
    found: dict[str, list[Sample]] = {event.name: [] for event in file.events}
    for event, each in file.records():
        if isinstance(each, Sample):
            found[file.events[event].name].append(each)
    return found


def said(run: subprocess.CompletedProcess[str]) -> str:
    return " ".join(run.stderr.split())


def test_no_address_of_the_kernel_is_left(tmp_path: Path) -> None:
    event = ("-e", "page-faults", "--filter")
    assert record(tmp_path, *event, f"ip >= {KERNEL:#x}", *COMMAND).returncode == 0
    (inside,) = sampled(tmp_path).values()
    assert record(tmp_path, *event, f"ip < {KERNEL:#x}", *COMMAND).returncode == 0
    (outside,) = sampled(tmp_path).values()
    assert inside
    assert len(outside) >= 256
    assert all(each.ip >= KERNEL for each in inside)
    assert all(each.ip < KERNEL for each in outside)


def test_a_field_that_samples_lack_names_the_option_which_then_works(tmp_path: Path) -> None:
    event = ("-e", "page-faults", "--filter", "cpu > 0")
    run = record(tmp_path, *event, *COMMAND)
    assert (run.returncode, os.listdir(tmp_path)) == (2, [])
    assert "do not have cpu (PERF_SAMPLE_CPU): add --sample-cpu" in said(run)
    assert record(tmp_path, "--sample-cpu", *event, *COMMAND).returncode == 0
    (found,) = sampled(tmp_path).values()
    assert all(each.cpu > 0 for each in found)


@pytest.mark.parametrize(
    "text", ["ip > 0 || cpu > 0", "cpu > 0 || ip > 0", "ip > 0, tid > 0 || cpu > 0"]
)
def test_every_field_of_a_group_must_be_there(tmp_path: Path, text: str) -> None:
    run = record(tmp_path, "-e", "page-faults", "--filter", text, *COMMAND)
    assert (run.returncode, os.listdir(tmp_path)) == (2, [])
    assert "(PERF_SAMPLE_CPU): add --sample-cpu" in said(run)
    *_, shown, carets = run.stderr.rstrip("\n").split("\n")
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "cpu > 0"


def test_the_filters_of_two_events_do_not_mix(tmp_path: Path) -> None:
    run = record(
        tmp_path, "-e", "page-faults", "--filter", f"ip < {KERNEL:#x}",
        "-e", "minor-faults", "--filter", f"ip >= {KERNEL:#x}", *COMMAND,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = sampled(tmp_path)
    assert len(found["page-faults"]) >= 256
    assert found["minor-faults"]
    assert all(each.ip < KERNEL for each in found["page-faults"])
    assert all(each.ip >= KERNEL for each in found["minor-faults"])


def test_a_filter_of_several_events_and_several_of_one(tmp_path: Path) -> None:
    run = record(
        tmp_path, "-e", "page-faults,minor-faults", "--filter", f"ip < {KERNEL:#x}",
        "--filter", "period == 2", *COMMAND,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert sampled(tmp_path) == {"page-faults": [], "minor-faults": []}
    for name in ("page-faults", "minor-faults"):
        assert f"filter: {name}: " in run.stderr
        assert "rejected by period == 2" in run.stderr


@pytest.mark.needs("bpf", "vmlinux_btf")
def test_explain_on_a_terminal(tmp_path: Path) -> None:
    """Nothing is recorded, and what is printed fits a terminal of 80 columns."""
    reader, terminal = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "purebpf",
        "record",
        "-v",
        "-e",
        "page-faults,sched:sched_switch",
    ]
    run = subprocess.run(
        [*command, "--filter", "prev_pid > 1", "--explain"], stdout=terminal, stderr=terminal,
        check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 2  # prev_pid is a field of the tracepoint alone
    run = subprocess.run(
        [*command[:-1], "page-faults", "--filter", "pid == 3 || comm == bash", "--explain"],
        stdout=terminal, stderr=terminal,
        check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(terminal)
    text = os.read(reader, 1 << 16).decode().replace("\r\n", "\n")
    os.close(reader)
    mistake, _, explained = text.partition("page-faults:\n")
    assert "unknown field 'prev_pid'" in mistake
    assert mistake.rstrip("\n").endswith("^" * len("prev_pid"))
    assert explained.startswith("filter: pid == 3 || comm == bash\nruns in ")
    assert "; 1: pid == 3 || comm == bash" in explained
    assert max(map(len, text.splitlines())) <= 80
    assert run.returncode == 0
    assert os.listdir(tmp_path) == []
