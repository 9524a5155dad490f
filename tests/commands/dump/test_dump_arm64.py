"""`dump`, `offcpu` and `wall` of threads that sleep on arm64: run in a guest (docs/testing.md)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.environment import run
from tests.support.programs.arm64 import FOLDER

pytestmark = [pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "arm64_programs")]

_CHAIN = ["main", "level1", "level2", "level3", "level4", "level5"]
_PYTHON = """
import os, threading
lock = threading.Lock()
lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
def waits(pairs): return sorted(pairs, key=lambda pair: os.read(7, 1))
os.dup2(0, 7)
print(flush=True)
waits([1])
"""


@contextmanager
def _waiting(*command: object) -> Iterator[int]:
    """A program that reads from a pipe into which nothing is written."""
    pipe = subprocess.PIPE
    with subprocess.Popen(list(map(str, command)), stdin=pipe, stdout=pipe) as child:
        try:
            if command[0] == sys.executable:
                assert child.stdout
                child.stdout.readline()
            yield child.pid
        finally:
            child.kill()


def _dump(pid: int, *options: str) -> list[dict[str, Any]]:
    """The threads of a process once the first one waits for its descriptor."""
    for _ in range(30):
        done = run("dump", "--json", *options, str(pid))
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        threads = found["threads"]
        is_there = threads[0]["waits_for"].startswith("read(7: pipe:[")
        if is_there and all(thread["state"] == "sleeps" for thread in threads):
            break
    print(done.stdout, done.stderr)
    assert threads[0]["waits_for"].startswith("read(7: pipe:[")
    assert threads[0]["tid"] == pid
    assert {thread["state"] for thread in threads} == {"sleeps"}
    return list(threads)


@pytest.mark.parametrize("name", ["waits", "waits-fp"])
def test_a_dump_has_the_chain_and_what_it_waits_for(name: str) -> None:
    with _waiting(FOLDER / name) as pid:
        (thread,) = _dump(pid)
    kinds = [frame["kind"] for frame in thread["frames"]]
    in_kernel = [frame["name"] for frame in thread["frames"] if frame["kind"] == "kernel"]
    names = [frame["name"] for frame in thread["frames"] if frame["kind"] == "user"]
    assert kinds == ["kernel"] * len(in_kernel) + ["user"] * len(names)
    assert "ksys_read" in in_kernel
    assert in_kernel[-1] == "el0t_64_sync"
    assert names[1:] == _CHAIN[::-1]  # read() is before them
    assert thread["problems"] == []


def test_a_dump_has_all_native_frames_of_python() -> None:
    with _waiting(sys.executable, "-c", _PYTHON) as pid:
        main, other = _dump(pid, "--native", "-U")
    names, others = (
        [frame["name"] for frame in thread["frames"] if frame["kind"] == "user"]
        for thread in (main, other)
    )
    assert "Py_BytesMain" in names
    assert any("libc_start_main" in name for name in names)
    assert len(names) > 20
    assert other["waits_for"].startswith("futex(0x")
    assert len(others) > 10
    problems = [*main["problems"], *other["problems"]]
    assert not [problem for problem in problems if "cut" in problem]


def test_python_that_slept_before_is_whole() -> None:
    with _waiting(sys.executable, "-c", _PYTHON) as pid:
        _dump(pid)
        done = run("offcpu", "--no-python", "--format", "json", "-U", "-p", str(pid), "3")
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["about"]["call_graph"] == "tables"
    assert len(found["stacks"]) == 2
    assert all(len(stack["user"]) > 10 for stack in found["stacks"])
    assert all("cut" not in stack for stack in found["stacks"])


@pytest.mark.parametrize("command", ["offcpu", "wall"])
@pytest.mark.parametrize(
    ("name", "mode"), [("waits", "tables"), ("waits", "copy"), ("waits-fp", "fp")]
)
def test_a_thread_that_slept_before_has_its_chain(command: str, name: str, mode: str) -> None:
    with _waiting(FOLDER / name) as pid:
        _dump(pid)
        options = ("--call-graph", mode, "--format", "json", "-U", "-p", str(pid), "3")
        done = run(command, *options)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = [frame["name"] for frame in found["frames"]]
    (stack,) = found["stacks"]
    chain = [names[number] for number in reversed(stack["user"])]
    assert chain[chain.index("main") : -1] == _CHAIN
    assert "cut" not in stack
    assert chain[0] == "_start"
