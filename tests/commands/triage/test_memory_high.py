"""A program that is slowed down by memory.high of its cgroup, on kernels with cgroup v2."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.commands.conftest import ROOT
from tests.support.host import cgroups

LIMIT = 24 << 20
PROGRAM = """
import sys, time
sys.stdin.read(1)
kept = bytearray(64 << 20)
while True:
    for at in range(0, len(kept), 4096):
        kept[at] = 1
"""


@pytest.mark.needs("bpf", "cgroup2")
def test_a_program_above_memory_high_is_named() -> None:
    with cgroups.made() as group:
        high = group / "memory.high"
        if not high.exists():
            pytest.skip("the memory controller is not one of cgroup v2 here")
        high.write_text(str(LIMIT))
        command = [sys.executable, "-c", PROGRAM]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as program:
            assert program.stdin is not None
            (group / "cgroup.procs").write_text(str(program.pid))
            program.stdin.write(b"1")
            program.stdin.flush()
            words = [sys.executable, "-m", "purebpf", "triage", "8", "--json"]
            done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
            program.kill()
    found = json.loads(done.stdout)["findings"]
    texts = ["; ".join((one["what"], *one["evidence"])) for one in found]
    (text,) = (one for one in texts if "memory.high" in one)
    assert "is slowed down by its cgroup's memory.high" in text
    assert f"memory.high of {group.name} is {LIMIT >> 20} MiB" in text
