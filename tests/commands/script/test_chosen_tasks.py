"""`purebpf script` with --cgroup, --container and --uid counts events of the chosen tasks only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.host import cgroups

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "tracefs", "cgroup2")

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script", "-q")
TEXT = 'tracepoint:syscalls:sys_enter_openat /str(args.filename) == "/dev/null"/ { @ = count(); }'
OUTSIDE, INSIDE = 7, 11
MOVING = f"""
import os, sys
def opens(times):
    for _ in range(times):
        os.close(os.open("/dev/null", os.O_RDONLY))
def move(folder):
    with open(folder + "/cgroup.procs", "w") as procs:
        procs.write("0")
opens({OUTSIDE})
move(sys.argv[1])
opens({INSIDE})
move(sys.argv[2])
opens({OUTSIDE})
"""
CHANGING = f"""
import os
def opens(times):
    for _ in range(times):
        os.close(os.open("/dev/null", os.O_RDONLY))
opens({OUTSIDE})
os.setresuid(65534, 0, 0)
opens({INSIDE})
os.setresuid(0, 0, 0)
opens({OUTSIDE})
"""


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup with a process that sleeps."""
    with cgroups.made() as path, subprocess.Popen(["sleep", "600"]) as sleeper:
        try:
            (path / "cgroup.procs").write_text(str(sleeper.pid))
            yield path
        finally:
            sleeper.kill()
            sleeper.wait()


@pytest.mark.parametrize("option", ["--cgroup", "--container"])
def test_events_of_a_cgroup_are_counted_exactly(tmp_path: Path, cgroup: Path, option: str) -> None:
    work = tmp_path / "work.py"
    work.write_text(MOVING)
    inner = cgroup / "inner"  # tasks below the cgroup belong to it
    inner.mkdir()
    try:
        child = f"{sys.executable} -S -E {work} {inner} {cgroup.parent}"
        name = str(cgroup) if option == "--cgroup" else cgroup.name
        done = script(option, name, "-c", child, "-e", TEXT)
        everywhere = script("-c", child, "-e", TEXT)
    finally:
        inner.rmdir()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"@: {INSIDE}"
    assert int(everywhere.stdout.split()[-1]) >= 2 * OUTSIDE + INSIDE


def test_events_of_a_user_are_counted_exactly(tmp_path: Path) -> None:
    work = tmp_path / "work.py"
    work.write_text(CHANGING)
    done = script("--uid", "65534", "-c", f"{sys.executable} -S -E {work}", "-e", TEXT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"@: {INSIDE}"


def test_timers_and_the_first_block_run_for_everybody(cgroup: Path) -> None:
    text = 'begin { printf("first "); } interval:ms:10 { printf("timer"); exit(); }'
    assert script("--cgroup", str(cgroup), "-e", text).stdout.split() == ["first", "timer"]


def test_an_iterator_is_refused_and_a_cgroup_that_is_none(cgroup: Path, tmp_path: Path) -> None:
    done = script("--cgroup", str(cgroup), "-e", 'iter:task { printf("x"); }')
    assert done.returncode == 1
    assert "an iterator visits objects and has no current task" in done.stderr
    done = script("--cgroup", str(tmp_path), "-e", TEXT)
    assert done.returncode == 1
    assert "find the mount with: findmnt -t cgroup2" in done.stderr
