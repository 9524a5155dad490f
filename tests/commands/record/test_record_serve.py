"""`record --serve`: the page of a recording that runs, and the same file as without it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import ROOT, Workloads

pytestmark = [pytest.mark.needs("perf_event", "gcc"), pytest.mark.any_kernel]


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "purebpf", name, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


def functions(stream: Any, wanted: str) -> tuple[int, list[str]]:
    """Totals of the seconds until one shows the function, and what they show."""
    total, names = 0, []
    for _ in range(30):
        assert stream.readline() == b"event: second\n"
        head = json.loads(stream.readline().removeprefix(b"data: "))["head"]
        stream.readline()
        total += head["total"]
        names += head["functions"]["name"]
        if any(wanted in name for name in names):
            break
    return total, names


def test_the_page_shows_what_is_in_the_file(workloads: Workloads, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    words = [sys.executable, "-m", "purebpf", "record", "-F", "499", "--serve", "-o", str(path)]
    with (
        workloads.running("split") as pid,
        subprocess.Popen(
            [*words, "-p", str(pid)], stderr=subprocess.PIPE, text=True, cwd=ROOT
        ) as recorder,
    ):
        try:
            assert recorder.stderr is not None
            found = re.fullmatch(
                r"live flame graph: (http://\S+/)\?(.+)\n", recorder.stderr.readline()
            )
            assert found
            with urllib.request.urlopen(f"{found[1]}events?{found[2]}", timeout=30) as stream:
                total, names = functions(stream, "spend")
            with urllib.request.urlopen(f"{found[1]}snapshot.json?{found[2]}", timeout=30) as page:
                snapshot = json.load(page)
            recorder.send_signal(signal.SIGINT)
            _, said = recorder.communicate(timeout=60)
        finally:
            recorder.kill()
    assert recorder.returncode == 0, said
    assert any("spend" in name for name in names), names
    report = run("report", "-i", str(path), "--format", "json")
    assert report.returncode == 0, report.stderr
    assert 0 < total <= snapshot["total"] <= json.loads(report.stdout)["total"]


def test_copied_stacks_are_refused() -> None:
    refused = run("record", "--serve", "--call-graph", "copy")
    assert refused.returncode == 2
    assert "use purebpf profile --serve" in " ".join(refused.stderr.split())
