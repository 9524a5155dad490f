"""Every command ended by a signal at any stage: it prints or vanishes; nothing stays attached."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.syscall import bpf
from tests.commands.conftest import children
from tests.support.environment import ROOT, commands_with, complete, every_command, start
from tests.support.host.faults import alive, slow_host

pytestmark = pytest.mark.needs("bpf", "perf_event")

PATIENCE_S = 120
PAUSE_S = 0.01 if slow_host() else 0.0005
"""Short beside a stage; on an emulated machine, who polls more often takes the command's time."""
LOSS_LINE = re.compile(r"^lost: ", re.MULTILINE)
KINDS = {"prog_id": "program", "map_id": "map", "link_id": "link"}


def descriptors(pid: int) -> list[str]:
    """What its descriptors that have no path refer to: `anon_inode:bpf-map`."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except FileNotFoundError:  # closed since
            continue
    return [each for each in found if each.startswith("anon_inode:")]


def has_map(pid: int) -> bool:
    return any("bpf-map" in each for each in descriptors(pid))


def is_attached(pid: int) -> bool:
    # a perf event without a link, before Linux 5.15
    return any("bpf_link" in each or "perf_event" in each for each in descriptors(pid))


def is_waiting(pid: int) -> bool:
    """Whether it is attached and sleeps: nothing is left to be done but to wait."""
    if not is_attached(pid):
        return False
    before = descriptors(pid)
    for _ in range(5):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state != "S" or descriptors(pid) != before:
            return False
        time.sleep(0.01)
    return True


STAGES: dict[str, Callable[[int], bool]] = {
    "loading": has_map,
    "attaching": is_attached,
    "waiting": is_waiting,
}
ENDINGS = [(stage, number) for stage in STAGES for number in (signal.SIGINT, signal.SIGTERM)]
ENDINGS.append(("waiting", signal.SIGHUP))


QUIET = {"trace": ("-e", "reboot")}
"""What keeps a command from having work all the time on a busy machine: it is to wait."""


def reach(stage: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not STAGES[stage](process.pid):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline, stage
        time.sleep(PAUSE_S)


def held(pid: int) -> set[tuple[str, int]]:
    """Kind and id of every map, program and link that a process holds."""
    found = set()
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            lines = entry.read_text().splitlines()
        except FileNotFoundError:  # closed since: the listing itself
            continue
        rows = dict(line.split(":", 1) for line in lines if ":" in line)
        # a program's fdinfo has only prog_id; a link's has its program's besides link_id
        found |= {(KINDS[key], int(rows[key])) for key in KINDS if key in rows}
    return found


@contextmanager
def running(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that would run for an hour."""
    with start(name, *QUIET.get(name, ()), *arguments, "3600") as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("name", "stage"), commands_with(STAGES))
def test_a_killed_command_leaves_nothing_in_the_kernel(name: str, stage: str) -> None:
    with running(name) as process:
        reach(stage, process)
        made = stopped(process)
        process.kill()
        process.communicate()
    assert {kind for kind, _ in made} >= {"map"}
    assert stage == "loading" or {kind for kind, _ in made} >= {"map", "program"}
    assert not alive(made)


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def stopped(process: subprocess.Popen[str]) -> set[tuple[str, int]]:
    """What it holds, now that it can do nothing more."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    return held(process.pid)


@every_command
def test_killed_before_its_command_begins(name: str, tmp_path: Path) -> None:
    """The child that waits to execute the command ends, and does not execute it."""
    witness = tmp_path / "ran"
    for _ in range(10):  # until it is stopped in time
        with start(name, "--", "touch", str(witness)) as process:
            reach("loading", process)
            made = stopped(process)
            begun = witness.exists()
            waiting = children(process.pid)
            process.kill()
            process.communicate(timeout=PATIENCE_S)  # the child has the same streams
        assert not alive(made)
        if not begun:
            break
        witness.unlink()
    assert not begun
    assert not witness.exists()
    deadline = time.monotonic() + PATIENCE_S
    while not all(map(has_ended, waiting)):
        assert time.monotonic() < deadline, waiting
        time.sleep(0.001)


@every_command
def test_killed_while_its_command_runs(name: str) -> None:
    """The command goes on; nothing stays attached to it."""
    with start(name, "--", "sh", "-c", "echo $$; exec cat") as process:
        assert process.stdout is not None
        pid = next(int(line) for line in process.stdout if line.strip().isdecimal())
        reach("attaching", process)
        made = stopped(process)
        process.kill()
        process.wait()
        assert not has_ended(pid)
        assert not alive(made)
        os.kill(pid, signal.SIGKILL)
        process.communicate()
    assert {kind for kind, _ in made} >= {"map", "program"}


@pytest.mark.parametrize(("name", "how"), commands_with(ENDINGS))
def test_asked_to_end(name: str, how: tuple[str, signal.Signals]) -> None:
    stage, number = how
    with running(name) as process:
        reach(stage, process)
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert LOSS_LINE.search(errors)
    assert output
    assert "Traceback" not in errors


@every_command
def test_a_second_interrupt_ends_at_once(name: str) -> None:
    """The second Ctrl-C does not wait for the result; where it comes too late, that is printed."""
    with running(name) as process:
        reach("waiting", process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 130), errors
    assert "Traceback" not in errors
    assert bool(LOSS_LINE.search(errors)) == (process.returncode == 0)


@every_command
def test_interrupted_while_it_starts(name: str) -> None:
    line = [sys.executable, "-X", "importtime", "-m", "purebpf", name]
    line += complete(name, ["3600"])
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stderr is not None
        for told in process.stderr:
            if told.split()[-1] == "purebpf.measure.stop":  # more imports follow
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    # 0 where the imports were over before the signal came; where one was under way, CPython ends by
    # the signal itself, whatever the command returns: to a shell, that is 130 too
    assert process.returncode in (0, 130, -signal.SIGINT), errors
    assert "Traceback" not in errors


@every_command
def test_killed_while_it_writes_a_file(name: str, tmp_path: Path) -> None:
    """The old result survives, whole."""
    target = tmp_path / "out"
    target.write_text("old")
    with running(name, "-o", str(target)) as process:
        reach("waiting", process)
        process.kill()
        process.communicate()
    assert target.read_text() == "old"


def test_the_ids_are_those_of_the_kernel() -> None:
    """`held` finds what it should: this very process's map, and no more."""
    with bpf.map_create(2, 4, 4, 1) as array:
        assert {kind for kind, _ in held(os.getpid())} == {"map"}
        made = held(os.getpid())
        assert array.fileno() >= 0
    assert not alive(made)
