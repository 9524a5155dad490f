"""The screen of a machine on which it is known what goes on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.commands.conftest import ROOT, Workloads

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf", "gcc")


def triage(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "purebpf", "triage", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )


def test_who_uses_the_cpus_and_which_calls_fail(workloads: Workloads) -> None:
    with (
        workloads.running("split") as pid,
        subprocess.Popen(["sh", "-c", "while :; do cat /nonexistent 2>/dev/null; done"]) as shell,
    ):
        try:
            result = triage("--format", "json", "3")
        finally:
            shell.kill()
    assert result.returncode == 0, result.stderr
    tree = json.loads(result.stdout)
    assert ("split", pid) in {(share["name"], share["pid"]) for share in tree["processes"]}
    assert 0 < tree["busy_cpus"] <= tree["cpus"] + 0.1
    assert tree["run_queue_us"]["waits"] > 0
    failed = {failure["name"]: failure for failure in tree["failures"]}
    assert failed["openat"]["error"] == "ENOENT"


def test_it_fits_a_screen() -> None:
    result = triage("1")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for command in ("profile", "top", "offcpu --waker", "runqlat -P", "summary -x"):
        assert any(line.endswith(f"-> purebpf {command}") for line in lines), command
