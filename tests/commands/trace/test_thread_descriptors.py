"""The paths of descriptors where threads do not share them."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from purebpf.measure.run import prepare
from purebpf.measure.run import run as follow_to_the_end
from purebpf.tools.trace import TraceOptions, Traces
from purebpf.tools.trace.events import Call
from tests.support.patience import until

pytestmark = [pytest.mark.needs("bpf", "vmlinux_btf", "current_task_btf")]
APART = """
import ctypes, os, sys, threading, time
first, second, begin = sys.argv[1], sys.argv[2], sys.argv[3:]
apart, may_go = threading.Event(), threading.Event()
shared = os.open(first, os.O_RDONLY)
def other():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    os.close(shared)
    assert os.open(second, os.O_RDONLY) == shared
    apart.set()
    may_go.wait()
    for _ in range(7):
        os.pread(shared, 5, 0)
    if begin:
        sys.stdin.readline()
thread = threading.Thread(target=other)
thread.start()
apart.wait()
if begin:
    print("apart", flush=True)
    sys.stdin.readline()
for _ in range(5):
    os.pread(shared, 3, 0)
may_go.set()
thread.join()
"""


def read_paths(options: TraceOptions, release: subprocess.Popen[str] | None = None) -> list[str]:
    """The first argument of each pread(2), as it is printed."""
    calls: list[Call] = []

    def drain() -> None:
        calls.extend(event for event in session.drain() if isinstance(event, Call))

    with prepare(partial(Traces, options), options.command) as (session, ends):
        if release:
            assert release.stdin
            release.stdin.write("\n")
            release.stdin.flush()
        last = follow_to_the_end(session, ends, drain)
    calls += [event for event in last.events if isinstance(event, Call)]
    assert not [cause for cause in last.loss.causes if cause.lost]
    return [
        call.arguments[0]
        for call in calls
        if call.name == "pread64" and call.words[1] and call.words[2] in (3, 5)
    ]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    made = []
    for name in ("first", "second"):
        path = tmp_path / name
        path.write_text("hello")
        made.append(str(path))
    return made[0], made[1]


def counts(paths: list[str], files: tuple[str, str]) -> list[int]:
    return [sum(f"<{path}>" in shown for shown in paths) for path in files]


def test_a_thread_with_a_table_of_its_own(files: tuple[str, str]) -> None:
    command = (sys.executable, "-S", "-c", APART, *files)
    assert counts(read_paths(TraceOptions(command=command, paths=True)), files) == [5, 7]


def test_a_thread_that_had_one_before(files: tuple[str, str]) -> None:
    command = [sys.executable, "-S", "-c", APART, *files, "wait"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        until(lambda: process.stdout.readline() == "apart\n")  # type: ignore[union-attr]
        options = TraceOptions(pids=(process.pid,), paths=True, duration_s=2.0)
        try:
            paths = read_paths(options, process)
        finally:
            process.kill()
    assert counts(paths, files) == [5, 7]
