"""`purebpf record --call-graph copy`: perf unwinds the file, and so does `report`."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT
from tests.support.oracles.copied_stacks import WHOLE, build, our_stacks, perf_stacks

pytestmark = pytest.mark.needs("perf_event", "gcc", "perf")


def purebpf(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "purebpf", name, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT, timeout=120)


@contextmanager
def busy(program: Path) -> Iterator[int]:
    child = subprocess.Popen([program, "60"])
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def record(file: Path, *arguments: str | Path) -> str:
    return purebpf("record", "-e", "cpu-clock", "-F", "499", "-o", file, *arguments).stderr


def test_perf_script_finds_the_same_frames_in_every_sample_of_a_command(tmp_path: Path) -> None:
    file, program = tmp_path / "a.data", build(tmp_path)
    record(file, "--call-graph", "copy", "--", program, "0.4")
    ours, theirs = our_stacks(file), perf_stacks(file)
    assert ours.total() > 50
    assert (ours & theirs).total() >= 0.95 * ours.total()  # perf stops short in ld.so
    script = subprocess.run(
        ["perf", "script", "-i", file, "-F", "ip,sym"], capture_output=True, text=True, check=True
    ).stdout
    names = [re.findall(r" ([a-z]\w*)$", each, re.MULTILINE) for each in script.split("\n\n")]
    chains = [sample[::-1] for sample in names if sample[:1] == ["leaf"]]
    assert len(chains) > 50
    assert all(sample[-len(WHOLE) :] == WHOLE for sample in chains)


def test_a_process_that_ran_before_is_unwound_too(tmp_path: Path) -> None:
    file = tmp_path / "a.data"
    with busy(build(tmp_path)) as pid:
        record(file, "--call-graph", "copy", "-p", str(pid), "0.4")
    ours, theirs = our_stacks(file), perf_stacks(file)
    assert ours == theirs
    assert {len(stack) for stack in ours} >= {len(WHOLE) + 3}
    found = json.loads(purebpf("report", "-i", file, "--format", "json").stdout)
    assert not any("cut" in stack for stack in found["stacks"])
    assert found["loss"]["stacks_cut"] == 0


def test_the_size_is_what_was_asked_for_and_the_file_is_for_its_owner_alone(
    tmp_path: Path,
) -> None:
    file, program = tmp_path / "a.data", build(tmp_path)
    told = record(file, "--call-graph", "copy,1024", "--", program, "0.2")
    assert "holds copies of the stacks" in " ".join(told.split())
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    listed = subprocess.run(
        ["perf", "evlist", "-v", "-i", file], capture_output=True, text=True, check=True
    ).stdout
    assert "sample_stack_user: 1024" in listed
    assert "exclude_callchain_user: 1" in listed
    told = record(file, "--call-graph", "fp", "--", program, "0.2")
    assert "holds copies" not in told
