"""`purebpf dump` says of each thread what the thread says of itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.syscall import proc
from purebpf.tools.dump import session
from purebpf.tools.dump.render import document
from tests.support.environment import run
from tests.support.programs import pythons
from tests.support.programs.chains import CHAINS

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf")
EVERY = [pytest.param(each, id=f"{each.version[1]}-{each.path}") for each in pythons.every()]
WITH_GIL = [pytest.param(each, id=f"{each.version[1]}-{each.path}") for each in pythons.with_gil()]
SLEEP_LINE = 1 + CHAINS.splitlines().index("    time.sleep(1000)")


@contextmanager
def started(python: str, program: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A program of its own file that has printed its first line, or is about to."""
    path = tmp_path / "program.py"
    path.write_text(program)
    with subprocess.Popen([python, path], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def dump(pid: int, *, native: bool = False, kernel: bool = True) -> dict[str, Any]:
    """What --json prints, without a process for it: that would cost a second each time."""
    found: dict[str, Any] = json.loads(document(session.dump(pid, native=native, kernel=kernel)))
    return found


def python_frames(thread: dict[str, Any]) -> list[list[Any]]:
    return [[f["name"], f["file"], f["line"]] for f in thread["frames"] if f["kind"] == "python"]


def test_a_launcher_names_its_child_that_runs_python() -> None:
    program = f"{sys.executable} -c 'print(1, flush=True); import time; time.sleep(1000)'; :"
    with subprocess.Popen(["sh", "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        (child,) = proc.children(process.pid)
        notes = dump(process.pid)["notes"]
        os.kill(child, signal.SIGKILL)
    version = ".".join(map(str, sys.version_info[:2]))
    assert notes == [
        f"no Python here; its child {child} runs CPython {version}: purebpf dump {child}"
    ]


@pytest.mark.parametrize("python", EVERY)
def test_every_thread_has_the_chain_it_wrote_down(python: pythons.Python, tmp_path: Path) -> None:
    with started(python.path, CHAINS, tmp_path) as process:
        assert process.stdout
        chains = json.loads(process.stdout.readline())
        found = dump(process.pid)
    assert found["python"] == ".".join(map(str, python.version))
    threads = {str(thread["tid"]): thread for thread in found["threads"]}
    assert len(threads) == len(chains) + 1
    for tid, (kind, chain) in chains.items():
        chain[0][2] = SLEEP_LINE  # where it went on to after it looked
        assert python_frames(threads[tid]) == chain, kind
        problems = threads[tid]["problems"]
        # libffi 3.4.7 says of arm64 that its caller is found by x1, which no call keeps
        has_bad_rule = kind == "ctypes" and os.uname().machine == "aarch64"
        assert not problems or (has_bad_rule and "rule_unsupported" in problems[0]), kind
        assert threads[tid]["frames"][0]["kind"] == "kernel"
        is_new = python.version >= (3, 11)
        assert threads[tid]["waits_for"] == ("clock_nanosleep()" if is_new else "pselect6()")


@pytest.mark.parametrize("python", EVERY)
def test_native_frames_lie_between_those_of_python(python: pythons.Python, tmp_path: Path) -> None:
    program = "import time\ndef key(x): time.sleep(1000)\nprint(flush=True)\nsorted([1], key=key)\n"
    with started(python.path, program, tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        while not (frames := dump(process.pid, native=True, kernel=False)["threads"][0]["frames"])[
            1:
        ]:
            pass
    names = [frame["name"] for frame in frames if frame["kind"] == "python"]
    assert names == ["key", "<module>"]
    between = [frame["kind"] for frame in frames]
    first, last = between.index("python"), len(between) - between[::-1].index("python") - 1
    assert "user" in between[first:last]  # list.sort
    assert between[:first] == ["user"] * first
    assert first
    assert not any("_PyEval_EvalFrameDefault" in frame["name"] for frame in frames)


SPIN = """
import threading
def spin():
    while True: pass
threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads: thread.start()
print(flush=True)
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("python", WITH_GIL)
def test_one_thread_holds_the_gil_and_others_wait_for_it(
    python: pythons.Python, tmp_path: Path
) -> None:
    holders, waits = set(), []
    with started(python.path, SPIN, tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        for number in range(50):
            if number >= 5 and holders and waits:  # on a busy machine, all may wait for a CPU
                break
            threads = dump(process.pid)["threads"]
            holding = [thread["tid"] for thread in threads if thread["holds_gil"]]
            assert len(holding) <= 1
            holders.update(holding)
            waits += [t["waits_for"] for t in threads if t["waits_for"].startswith("the GIL")]
            assert {tuple(python_frames(t)[0][:1]) for t in threads[1:]} == {("spin",)}
    assert holders
    assert waits
    assert all(wait == "the GIL" or wait.startswith("the GIL (held by ") for wait in waits)


READS = """
import os
def reads():
    os.read(read, 1)
read, write = os.pipe()
print(flush=True)
reads()
"""


ALTERNATES = """
import os, threading, time
read, write = os.pipe()
def writes():
    while True:
        time.sleep(0.08)
        os.write(write, b".")
threading.Thread(target=writes, daemon=True).start()
print(flush=True)
while True:
    os.read(read, 1)
    time.sleep(0.04)
"""


def test_kernel_and_user_frames_of_a_thread_are_of_one_moment(tmp_path: Path) -> None:
    seen = set()
    with started(sys.executable, ALTERNATES, tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        for number in range(60):
            if number >= 12 and seen == {"pipe_read", "nanosleep"}:
                break
            thread = dump(process.pid)["threads"][0]
            names = " ".join(f["name"] for f in thread["frames"] if f["kind"] == "kernel")
            if thread["problems"] or not names:
                continue
            waits = "pipe_read" if thread["waits_for"].startswith("read(") else "nanosleep"
            assert waits in names, thread
            seen.add(waits)
    assert seen == {"pipe_read", "nanosleep"}


def test_text_is_what_a_person_reads(tmp_path: Path) -> None:
    with started(sys.executable, READS, tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        while "anon_pipe_read" not in (
            text := run("dump", "-v", "-p", str(process.pid)).stdout
        ) and ("pipe_read" not in text):
            pass
    head, python, _, thread, *frames = text.splitlines()
    assert head.startswith(f"PID {process.pid}: ")
    assert python.startswith("CPython 3.")
    assert thread.startswith(f'Thread {process.pid} "python')
    assert ": sleeps, waits for read(3: pipe:[" in thread
    assert frames[-2:] == [
        f"    reads ({tmp_path}/program.py:4)",
        f"    <module> ({tmp_path}/program.py:7)",
    ]
    assert any(line.endswith("[kernel]") for line in frames)


def test_programs_without_python_have_their_native_stacks() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            while (found := dump(process.pid))["threads"][0]["waits_for"] != "clock_nanosleep()":
                pass
        finally:
            process.kill()
    assert found["python"] == ""
    kinds = [frame["kind"] for frame in found["threads"][0]["frames"]]
    assert kinds[0] == "kernel"
    assert kinds[-1] == "user"


def test_json_is_what_the_library_gives(tmp_path: Path) -> None:
    with started(sys.executable, SPIN, tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        result = run("dump", "--json", "-U", str(process.pid))
    found = json.loads(result.stdout)
    assert {frame["kind"] for thread in found["threads"] for frame in thread["frames"]} == {
        "python",
        "user",
    }
    assert len(found["threads"]) == 4


def test_a_process_that_is_none_is_refused() -> None:
    result = run("dump", "4194303")
    assert result.returncode == 1
    assert "4194303" in result.stderr


def test_many_threads_take_as_long_each_as_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which thread has which state is listed once, not again for each: a user may have 30,000."""
    listed = []
    holders = session._State.holders

    def count(state: session._State, copies: Any) -> dict[int, int]:
        listed.append(len(copies))
        return holders(state, copies)

    monkeypatch.setattr(session._State, "holders", count)
    with started(sys.executable, SPIN, tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        assert len(dump(process.pid)["threads"]) == 4
    assert listed == [4]
