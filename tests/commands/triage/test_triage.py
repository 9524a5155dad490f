"""Small incidents, measured: the cause is named, and each command that is recommended works."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.findings.codec import decode_facts
from purebpf.findings.find import find
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")

CONVOY = """
import threading, time
lock = threading.Lock()
def reserve():
    with lock:
        time.sleep(0.02)
def serve():
    while True:
        reserve()
        time.sleep(0.001)
for _ in range(6):
    threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
IDLE = """
import queue, threading
jobs = queue.Queue()
for _ in range(6):
    threading.Thread(target=jobs.get, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
ZOMBIES = """
import os, time
for _ in range(25):
    if not os.fork():
        os._exit(0)
print("ready", flush=True)
time.sleep(600)
"""
FOUND = 10


def purebpf(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "purebpf", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=300,
    )


@contextmanager
def program(folder: Path, text: str) -> Iterator[int]:
    script = folder / "shop.py"
    script.write_text(text)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process.pid
        finally:
            process.kill()


def findings_about(pid: int, *words: str) -> list[dict[str, object]]:
    result = purebpf("triage", "--json", *words)
    assert result.returncode in (0, FOUND), result.stderr
    tree = json.loads(result.stdout)
    assert bool(tree["findings"]) == (result.returncode == FOUND)
    return [one for one in tree["findings"] if pid in one["who"]["pids"]]


def test_a_convoy_is_found_with_its_function_and_the_command_works(tmp_path: Path) -> None:
    with program(tmp_path, CONVOY) as pid:
        for _ in range(4):  # on a busy machine the looks at sleepers may all come too late
            found = findings_about(pid, "4", "--save", str(tmp_path / "facts.json"))
            convoys = [one for one in found if one["kind"] == "lock-convoy"]
            if convoys:
                break
        (convoy,) = convoys
        own = convoy["own"]
        assert isinstance(own, dict)
        assert own["function"] == "reserve"
        command = convoy["command"]
        assert isinstance(command, list)
        shown = purebpf(*command, "2")
        assert shown.returncode == 0, shown.stderr
        assert "reserve" in shown.stdout
    again = findings_about(pid, "--load", str(tmp_path / "facts.json"))
    assert [one["kind"] for one in again] == [one["kind"] for one in found]


def test_idle_workers_are_no_finding(tmp_path: Path) -> None:
    with program(tmp_path, IDLE) as pid:
        assert findings_about(pid, "3") == []


def test_findings_about_one_process_only(tmp_path: Path) -> None:
    """Zombies and nothing else, beside a convoy; the convoy is one of the others."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with program(tmp_path / "a", CONVOY), program(tmp_path / "b", ZOMBIES) as pid:
        result = purebpf("triage", "--json", "3", "-p", str(pid))
        assert result.returncode == FOUND, result.stderr
        tree = json.loads(result.stdout)
        assert [one["kind"] for one in tree["findings"]] == ["zombies"]
        assert tree["others"] >= 1
        nobody = purebpf("triage", "1", "-p", str(1 << 22))
    assert nobody.returncode == 1
    assert "no process or thread has ID 4194304" in nobody.stderr


def test_zombies_are_found(tmp_path: Path) -> None:
    saved = tmp_path / "facts.json"
    with program(tmp_path, ZOMBIES) as pid:
        findings_about(pid, "2", "--save", str(saved))
    found = find(decode_facts(json.loads(saved.read_text())), most=100)  # other work costs more
    assert [one.kind for one in found if pid in one.pids] == ["zombies"]


def test_text_fits_a_screen() -> None:
    result = purebpf("triage", "1")
    assert result.returncode in (0, FOUND), result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
