"""Labels of processes in cgroups that are named as a container runtime names them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from purebpf.observe.processes.cgroup_labels import CgroupLabels
from purebpf.observe.processes.process_tracker import Followed
from tests.support.host import cgroups

pytestmark = [pytest.mark.needs("perf_event", "cgroup2"), pytest.mark.any_kernel]

ID = "3f2a9c1b2d3e" + "0" * 52
LABEL = "docker:3f2a9c1b2d3e"
BUSY = "print(flush=True)\nwhile True: pass"


@contextmanager
def container() -> Iterator[Path]:
    with cgroups.made() as parent:
        path = parent / f"docker-{ID}.scope"
        path.mkdir()
        try:
            yield path
        finally:
            path.rmdir()


def started(path: Path, *command: str) -> subprocess.Popen[str]:
    """A process that entered the cgroup before it executed the command, as runtimes do it."""
    enter = 'echo 0 > "$0/cgroup.procs" && exec "$@"'
    return subprocess.Popen(
        ["/bin/sh", "-c", enter, str(path), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_process_has_the_label_of_its_container_before_and_after_its_end() -> None:
    with container() as path, closing(Followed()) as followed:
        with started(path, sys.executable, "-c", "print(flush=True); input()") as child:
            assert child.stdout is not None
            assert child.stdin is not None
            child.stdout.readline()
            followed.drain()
            assert followed.cgroups.of(child.pid) == LABEL
            child.stdin.write("\n")
        assert not Path(f"/proc/{child.pid}").exists()
        followed.drain()
        assert followed.cgroups.of(child.pid) == LABEL


def test_a_child_that_came_and_went_has_the_label_of_who_forked_it() -> None:
    """What was forked last is read from the kernel when it is over."""
    with container() as path, closing(Followed()) as followed:
        script = "echo $$; read line; /bin/true & echo $!; wait"
        with started(path, "/bin/sh", "-c", script) as child:
            assert child.stdout is not None
            assert child.stdin is not None
            child.stdout.readline()
            followed.drain()
            child.stdin.write("\n")
            child.stdin.flush()
            grandchild = int(child.stdout.readline())
            child.stdin.close()
            child.wait()
        assert not Path(f"/proc/{grandchild}").exists()
        followed.drain()
        assert followed.cgroups.of(grandchild) == LABEL


def test_processes_without_a_cgroup_and_those_that_are_gone_have_no_label() -> None:
    labels = CgroupLabels()
    assert labels.of(0) == ""
    assert labels.of(1 << 30) == ""


@contextmanager
def busy(path: Path) -> Iterator[str]:
    """The pid of a process that computes in a cgroup."""
    child = started(path, sys.executable, "-c", BUSY)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield str(child.pid)
    finally:
        child.kill()
        child.communicate()


def output(command: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "purebpf", command, *arguments],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def labels_of(document: str) -> set[str]:
    return {stack.get("cgroup", "") for stack in json.loads(document)["stacks"]}


@pytest.mark.needs("bpf")
def test_a_profile_says_in_which_container_it_was() -> None:
    with container() as path, busy(path) as pid:
        found = output("profile", "--format", "json", "-p", pid, "-F", "99", "1")
    assert labels_of(found) == {LABEL}


def test_so_does_a_report_of_a_recording_with_cgroups(tmp_path: Path) -> None:
    data = str(tmp_path / "perf.data")
    with container() as path, busy(path) as pid:
        output("record", "--all-cgroups", "-F", "99", "-p", pid, "-o", data, "1")
    assert labels_of(output("report", "-i", data, "--format", "json")) == {LABEL}
