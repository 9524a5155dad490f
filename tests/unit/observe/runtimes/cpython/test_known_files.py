"""Many processes of one program cost the questions of one: which file it is, which mounts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from purebpf.files import fuse_mounts
from purebpf.observe.runtimes.cpython import python_process
from purebpf.observe.runtimes.cpython.python_process import KnownFiles, find_python
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall import proc


@pytest.fixture
def pids() -> Iterator[list[int]]:
    """Five processes of one program that is not Python."""
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                subprocess.Popen(
                    ["sh", "-c", "echo; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            for _ in range(5)
        ]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        yield [child.pid for child in children]
        for child in children:
            child.kill()


def test_a_file_is_asked_for_once(pids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    status = python_process.mapped_status

    def count(mapping: Mapping, pid: int) -> object:
        asked.append(pid)
        return status(mapping, pid)

    monkeypatch.setattr(python_process, "mapped_status", count)
    files = KnownFiles()
    assert [find_python(pid, files) for pid in pids] == [None] * 5
    assert len(asked) <= 1
    files.recent.clear()
    find_python(pids[0], files)
    assert len(asked) <= 2


def test_mounts_are_read_once(pids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse_mounts, "_known", {})
    for pid in pids:
        assert not fuse_mounts._mounts_for(f"{proc.PROC}/{pid}/root/etc")
    assert len(fuse_mounts._known) == 1
