"""Memory in a file system that never answers: no read of it may hold root, who could not end it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.environment import run
from tests.support.host.silent_fuse import silent
from tests.support.nightly import by_day

pytestmark = [
    # a uprobe of another test comes to all processes that map its file: while the kernel waits for
    # the mappings of one, no process of the machine can fork
    pytest.mark.alone,
    pytest.mark.needs("bpf", "perf_event", "vmlinux_btf", "x86_64", "mount_namespace"),
    pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="this kernel has no FUSE"),
]


@pytest.fixture(autouse=True)
def _is_quick() -> object:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 60


def test_dump_says_that_it_could_not_read_all() -> None:
    with silent("stack") as pid:
        result = run("dump", str(pid))
        assert Path(f"/proc/{pid}").exists()
    assert result.returncode == 0, result.stderr
    assert "pause()" in result.stdout
    assert "not all of it was read: its memory is in a file system" in result.stdout


def test_a_profile_of_the_machine_ends() -> None:
    with silent("python") as pid:
        result = run("profile", "-F", "199", "-a", "1")
        assert Path(f"/proc/{pid}").exists()
    assert result.returncode == 0, result.stderr
    said = " ".join((result.stdout + result.stderr).split())
    assert f"process {pid} has native frames only" in said
    assert "a file system that does not answer" in said


COMMANDS = {
    "profile": ("-F", "199", "-a", "1"),
    "offcpu": ("-p", "PID", "1"),
    "wall": ("-p", "PID", "1"),
    "dump": ("PID",),
    "lock": ("--userspace", "-p", "PID", "1"),
    "triage": ("1",),
}


FOUND = 10
"""The status of triage where the machine has something to find."""


def ended(mode: str, command: str) -> CompletedProcess[str]:
    """A command that ended, though there was such a process all the time."""
    with silent(mode) as pid:
        words = [word.replace("PID", str(pid)) for word in COMMANDS[command]]
        result = run(command, *words)
        assert Path(f"/proc/{pid}").exists()
    assert result.returncode in (0, FOUND), result.stderr
    return result


@pytest.mark.parametrize("command", by_day(COMMANDS, ("profile", "triage")))
def test_the_lock_of_mappings_that_a_thread_holds_holds_no_command(command: str) -> None:
    assert "Traceback" not in ended("lock", command).stderr


@pytest.mark.parametrize("command", by_day(["offcpu", "wall", "triage"], ["offcpu", "triage"]))
def test_stacks_of_sleepers_that_cannot_be_read_hold_no_command(command: str) -> None:
    said = " ".join(ended("stack", command).stderr.split())
    assert re.search("before (the stack|its user stack) was read", said)
