"""Labels of processes in cgroups that are named as a container runtime names them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from purebpf.kernel.cgroup_labels import CgroupLabels
from purebpf.kernel.followed import Followed
from tests.support import cgroups

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


def test_who_is_in_no_group_and_who_is_not_there_have_no_label() -> None:
    labels = CgroupLabels()
    assert labels.of(0) == ""
    assert labels.of(1 << 30) == ""


@pytest.mark.needs("bpf")
def test_a_profile_says_in_which_container_it_was() -> None:
    with container() as path:
        busy = started(path, sys.executable, "-c", BUSY)
        try:
            assert busy.stdout is not None
            busy.stdout.readline()
            found = subprocess.run(
                [sys.executable, "-m", "purebpf.profile", "--format", "json", "-p", str(busy.pid),
                 "-F", "99", "1"],
                check=True, capture_output=True,
            )  # fmt: skip
        finally:
            busy.kill()
            busy.communicate()
    stacks = json.loads(found.stdout)["stacks"]
    assert stacks
    assert {stack["cgroup"] for stack in stacks} == {LABEL}
