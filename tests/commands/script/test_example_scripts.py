"""The scripts of examples/scripts, run as their page says, with a known workload."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "scripts"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.bt"))
COMMAND = (sys.executable, "-P", "-m", "purebpf", "script", "-q")
PRIME = 13


def run(name: str, workload: Path, *parameters: str) -> str:
    """Run a script while a workload runs, and return the output."""
    command = f"{sys.executable} -I {workload}"
    return subprocess.run(
        [*COMMAND, "-c", command, str(FOLDER / name), *parameters], capture_output=True, text=True,
        check=True, timeout=120, cwd=ROOT,
    ).stdout  # fmt: skip


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Open a missing file, ask for a wrong priority and start a program, each 13 times."""
    path = tmp_path_factory.mktemp("examples") / "workload.py"
    path.write_text(
        "import os, subprocess\n"
        f"for _ in range({PRIME}):\n"
        "    try: os.open('/nowhere/at/all', 0)\n"
        "    except OSError: pass\n"
        "    try: os.getpriority(99, 0)\n"
        "    except OSError: pass\n"
        "    subprocess.run(['/bin/true'])\n"
    )
    return path


def test_each_script_has_a_row_in_the_page_and_about_ten_lines() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(\w+\.bt)\]", page, re.MULTILINE) != []
    assert sorted(re.findall(r"^\| \[(\w+\.bt)\]", page, re.MULTILINE)) == SCRIPTS
    for name in SCRIPTS:
        lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
        assert lines[0] == "#!/usr/bin/env -S purebpf script"
        assert len(lines) <= 13


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_runs(name: str, workload: Path) -> None:
    run(name, workload, "0")


def test_opens_shows_each_failure(workload: Path) -> None:
    rows = run("opens.bt", workload).splitlines()
    assert sum(row.split()[2:] == ["-2", "/nowhere/at/all"] for row in rows) == PRIME


def test_execs_shows_each_start_and_end(workload: Path) -> None:
    rows = [row.split() for row in run("execs.bt", workload).splitlines()]
    started = {row[1] for row in rows if row[:1] == ["start"] and row[-1] == "/bin/true"}
    ended = {row[1] for row in rows if row[:1] == ["end"] and row[-1] == "true"}
    assert len(started) >= PRIME
    assert started <= ended


def test_syscalls_counts_calls_and_errors(workload: Path) -> None:
    text = run("syscalls.bt", workload, "0")
    count = re.search(r"^@us\[getpriority\]: \{ \.count = (\d+)", text, re.MULTILINE)
    failed = re.search(r"^@failed\[getpriority, Invalid argument\]: (\d+)$", text, re.MULTILINE)
    assert count is not None
    assert failed is not None
    assert int(count[1]) >= int(failed[1]) >= PRIME
