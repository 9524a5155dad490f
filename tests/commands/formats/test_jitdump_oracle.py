"""A jitdump of node as perf inject reads it, and as we do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs("node", "perf", "perf_event"), pytest.mark.any_kernel]

PROGRAM = """
function spin_here(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
const until = Date.now() + 2000;
while (Date.now() < until) spin_here(1e6);
"""
LEAF = re.compile(r"^[^\t\n].*\n\s+[0-9a-f]+ (JS:.*)\+0x([0-9a-f]+) \(", re.MULTILINE)


def _perf(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["perf", *arguments], cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_perf_inject_finds_the_same_functions_and_offsets(tmp_path: Path) -> None:
    (tmp_path / "loop.js").write_text(PROGRAM)
    recording = ("-k", "1", "-e", "cpu-clock", "-F", "99", "-g", "-o", "recorded.data")
    _perf(tmp_path, "record", "-N", *recording, "--", "node", "--perf-prof", "loop.js")
    _perf(tmp_path, "inject", "-j", "-i", "recorded.data", "-o", "injected.data")
    theirs = Counter(
        (name, int(offset, 16))
        for name, offset in LEAF.findall(_perf(tmp_path, "script", "-i", "injected.data"))
    )
    report = [sys.executable, "-m", "purebpf", "report", "-i", "recorded.data", "--format", "json"]
    done = subprocess.run(report, cwd=tmp_path, check=True, capture_output=True, text=True)
    profile = json.loads(done.stdout)
    ours: Counter[tuple[str, int]] = Counter()
    for stack in profile["stacks"]:
        leaf = profile["frames"][stack["user"][0]] if stack["user"] and not stack["kernel"] else {}
        if leaf.get("module") == "[jit]":
            ours[leaf["name"], leaf["offset"]] += stack["weight"]
    assert any("spin_here" in name for name, _ in ours)
    assert ours == theirs
