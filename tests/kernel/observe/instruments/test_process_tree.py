"""Processes of a tree, followed from fork to the last that is heard of them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.loader.maps.map import Map
from purebpf.observe.instruments.process_tree import ProcessTree

pytestmark = pytest.mark.needs("bpf")

PRIME = 211
SHORT = f"i=0; while [ $i -lt {PRIME} ]; do /bin/true; i=$((i+1)); done"


def entered(tree: ProcessTree) -> int:
    return int(tree._object.maps["tree_stats"][0].entered)


@pytest.fixture
def tgids() -> Iterator[Map]:
    with load(objects.spec("process_tree").resize(tgids=4096)) as owner:
        yield owner.maps["tgids"]


def test_each_child_enters_once(tgids: Map) -> None:
    with subprocess.Popen(["sh", "-c", f"read go; {SHORT}"], stdin=subprocess.PIPE) as shell:
        tgids[shell.pid] = 1
        with ProcessTree(tgids) as tree:
            shell.communicate(b"\n")
            assert entered(tree) == PRIME
            assert tree.missed == 0


def test_a_process_that_has_ended_leaves(tgids: Map) -> None:
    with subprocess.Popen(["sh", "-c", f"read go; {SHORT}"], stdin=subprocess.PIPE) as shell:
        tgids[shell.pid] = 1
        with ProcessTree(tgids):
            shell.communicate(b"\n")
            until = time.monotonic() + 10
            while len(tgids) and time.monotonic() < until:  # after a grace period of RCU
                time.sleep(0.01)
            assert len(tgids) == 0


def test_others_do_not_enter(tgids: Map) -> None:
    with ProcessTree(tgids) as tree:
        subprocess.run(["sh", "-c", SHORT], check=True)
        assert (entered(tree), len(tgids)) == (0, 0)


def test_processes_of_a_name_enter_at_execve(tgids: Map, tmp_path: Path) -> None:
    path = tmp_path / f"of{os.getpid()}"
    path.symlink_to("/bin/true")
    with ProcessTree(tgids, name=path.name, children=False) as tree:
        subprocess.run(["sh", "-c", SHORT.replace("/bin/true", str(path))], check=True)
        assert (entered(tree), tree.missed) == (PRIME, 0)


def test_a_process_leaves_with_its_name(tgids: Map, tmp_path: Path) -> None:
    path = tmp_path / f"of{os.getpid()}"
    path.symlink_to("/bin/sh")
    command = [path, "-c", "read go; exec sleep 30"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as shell,  # it has the name before
        ProcessTree(tgids, name=path.name, children=False),
    ):
        assert shell.pid in tgids
        assert shell.stdin is not None
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        until = time.monotonic() + 20
        while shell.pid in tgids and time.monotonic() < until:
            time.sleep(0.01)
        assert shell.pid not in tgids
        shell.kill()


def test_a_command_enters_at_its_execve(tgids: Map) -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.read(read, 1)
        os.execvp("sh", ["sh", "-c", SHORT])
    with ProcessTree(tgids, command_pid=child) as tree:
        assert len(tgids) == 0
        os.write(write, b"!")
        os.waitpid(child, 0)
        assert entered(tree) == PRIME + 1
    os.close(read)
    os.close(write)


def test_children_without_a_place_are_counted() -> None:
    with load(objects.spec("process_tree").resize(tgids=1)) as owner:
        tgids = owner.maps["tgids"]
        with subprocess.Popen(["sh", "-c", f"read go; {SHORT}"], stdin=subprocess.PIPE) as shell:
            tgids[shell.pid] = 1
            with ProcessTree(tgids) as tree:
                shell.communicate(b"\n")
                assert (entered(tree), tree.missed) == (0, PRIME)
