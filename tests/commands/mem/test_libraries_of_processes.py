"""Allocators in libraries that a process has and this machine has not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT
from tests.support.programs.own_files import LIBRARY, WAYS, running_with_own_library

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc", "x86_64")


@pytest.mark.parametrize("way", list(WAYS))
def test_a_library_by_name(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "place"))
    with running_with_own_library(way, tmp_path) as (pid, _):
        words = ("mem", "-p", str(pid), "--library", LIBRARY, "--show", "allocated", "-f", "1")
        command = [sys.executable, "-P", "-m", "purebpf", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    stacks = [line for line in done.stdout.splitlines() if ";work" in line]
    assert stacks, done.stdout + done.stderr
