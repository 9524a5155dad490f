"""Counts are exact while all CPUs change the same keys, and losses are counted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "tracefs"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script")
STORM = """
import os, sys
processes, calls = map(int, sys.argv[1:])
children = []
for _ in range(processes):
    pid = os.fork()
    if not pid:
        with open("/proc/self/comm", "w") as file:
            file.write("storm")
        for _ in range(calls):
            os.getppid()
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
"""
GETPPID = {"x86_64": 110, "aarch64": 173}[os.uname().machine]
CALL = 'tracepoint:syscalls:sys_enter_getppid /comm == "storm"/'


def storm(
    tmp_path: Path, text: str, processes: int, calls: int
) -> subprocess.CompletedProcess[str]:
    """Run a script while some processes call getppid(2)."""
    path = tmp_path / "storm.py"
    path.write_text(STORM)
    work = f"{sys.executable} -S -E {path} {processes} {calls}"
    return subprocess.run(
        [*COMMAND, "-q", "-c", work, "-e", text, str(GETPPID)],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip


def number(text: str, pattern: str) -> int:
    """Return the number that a pattern finds."""
    match = re.search(pattern, text, re.MULTILINE)
    assert match is not None, text
    return int(match[1])


def test_two_million_increments_of_one_key_from_all_cpus(tmp_path: Path) -> None:
    processes = (os.cpu_count() or 1) + 1
    calls = -(-2_000_000 // processes)
    text = (
        f"{CALL} {{ @perf[1]++; @scalar++; @counted = count(); @sum[comm] = sum(3); }} "
        'tracepoint:raw_syscalls:sys_enter /comm == "storm" && args.id == $1/ '
        "{ @raw[1]++; @raw_counted[args.id] = count(); }"
    )
    done = storm(tmp_path, text, processes, calls)
    total = processes * calls
    assert done.stdout == (
        f"\n\n@counted: {total}\n@perf[1]: {total}\n@raw[1]: {total}\n"
        f"@raw_counted[{GETPPID}]: {total}\n@scalar: {total}\n@sum[storm]: {3 * total}\n"
    ), done
    assert done.stderr == ""


def test_a_full_map_counts_every_update_that_it_lost(tmp_path: Path) -> None:
    text = (
        "config = { max_map_keys = 300 } "
        f"{CALL} {{ @shared[rand % 5000]++; @own[rand % 5000] = count(); @all = count(); }}"
    )
    done = storm(tmp_path, text, 4, 50_021)
    for name in ("shared", "own"):
        rows = [
            int(value)
            for value in re.findall(rf"^@{name}\[\d+\]: (\d+)$", done.stdout, re.MULTILINE)
        ]
        lost = number(done.stderr, rf"@{name} has 300 keys, and (\d+) updates")
        assert 0 < len(rows) <= 300
        assert sum(rows) + lost == 4 * 50_021
    assert number(done.stdout, r"^@all: (\d+)$") == 4 * 50_021


def test_a_full_ring_counts_every_event_that_it_lost(tmp_path: Path) -> None:
    text = f'config = {{ perf_rb_pages = 1 }} {CALL} {{ printf("%d event\\n", rand % 10); }}'
    done = storm(tmp_path, text, 4, 50_021)
    events = done.stdout.count(" event\n")
    match = re.search(r"Lost (\d+) events", done.stderr)
    assert events + int(match[1] if match else 0) == 4 * 50_021
