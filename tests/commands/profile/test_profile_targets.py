"""Targets that come and go, and targets by name."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from purebpf.measure.named_targets import processes_named
from purebpf.measure.target_ends import TargetEnds, descendants
from purebpf.measure.targets import NoSuchTargetError
from tests.commands.conftest import Run, Workloads

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")


def comms(path: Path) -> set[str]:
    return {stack["comm"] for stack in json.loads(path.read_text())["stacks"]}


def processes_found(name: str) -> bool:
    try:
        return bool(processes_named(name))
    except NoSuchTargetError:
        return False


def test_the_run_ends_with_its_process(profile: Run) -> None:
    with subprocess.Popen(["sleep", "5"]) as process:
        began = time.monotonic()
        result = profile("-p", str(process.pid), "40")
        assert time.monotonic() - began < 30
    assert result.returncode == 0
    assert f"PID {process.pid} ended after " in result.stderr


def test_a_tree_has_children_that_exist_and_those_to_come(
    workloads: Workloads, profile: Run, tmp_path: Path
) -> None:
    script = f"{workloads.path('split')} & echo ready; while :; do {workloads.path('brief')}; done"
    with subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        try:
            assert shell.stdout is not None
            shell.stdout.readline()
            target = ("-p", str(shell.pid), "-F", "499", "1")
            alone = profile("-o", str(tmp_path / "alone.json"), *target)
            tree = profile("-o", str(tmp_path / "tree.json"), "--tree", *target)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    assert (alone.returncode, tree.returncode) == (0, 0), tree.stderr
    assert comms(tmp_path / "alone.json") <= {"sh"}
    assert {"split", "brief"} <= comms(tmp_path / "tree.json")


def test_a_child_that_exits_during_the_run_has_names(
    workloads: Workloads, profile: Run, tmp_path: Path
) -> None:
    script = f"{workloads.path('split')} >/dev/null & echo ready; sleep 2; kill $!; sleep 30"
    with subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        try:
            assert shell.stdout is not None
            shell.stdout.readline()
            target = ("-p", str(shell.pid), "--tree", "--no-python", "-U", "-F", "499", "4")
            result = profile("-o", str(tmp_path / "tree.json"), *target)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    assert result.returncode == 0, result.stderr
    document = json.loads((tmp_path / "tree.json").read_text())
    split = [stack for stack in document["stacks"] if stack["comm"] == "split"]
    frames = [document["frames"][frame] for stack in split for frame in stack["user"] or ()]
    assert "main" in {frame.get("name") for frame in frames}
    assert not [frame for frame in frames if "unknown" in frame]


def test_processes_by_name(workloads: Workloads, profile: Run, tmp_path: Path) -> None:
    name = f"of-{os.getpid()}"  # other tests run programs of the usual names
    shutil.copy(workloads.path("split"), tmp_path / name)
    with subprocess.Popen([tmp_path / name], stdout=subprocess.DEVNULL) as process:
        try:
            while not processes_found(name):
                time.sleep(0.01)
            assert processes_named(name) == (process.pid,)
            result = profile("--comm", name, "-F", "499", "-o", str(tmp_path / "o.json"), "0.5")
        finally:
            process.kill()
    assert result.returncode == 0, result.stderr
    assert comms(tmp_path / "o.json") == {name}
    with pytest.raises(NoSuchTargetError, match="no process is called 'no such'"):
        processes_named("no such")


def test_no_such_container_is_an_error_with_names(profile: Run) -> None:
    result = profile("--container", "no-such-container", "1")
    assert result.returncode == 1
    assert "no container" in result.stderr


def test_descendants_are_found_through_proc() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as shell:
        try:
            until = time.monotonic() + 10
            while len(found := descendants([shell.pid])) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            assert shell.pid in found
            assert len(found) == 2
        finally:
            for pid in descendants([shell.pid]):
                subprocess.run(["kill", str(pid)], check=False)


def test_each_end_is_noticed_once() -> None:
    with (
        subprocess.Popen(["sleep", "30"]) as one,
        subprocess.Popen(["sleep", "30"]) as other,
        TargetEnds((one.pid, other.pid)) as ends,
    ):
        assert ends
        assert not ends.drop_ended()
        other.kill()
        other.wait()
        assert ends.drop_ended()
        assert (bool(ends), ends.ended) == (True, [other.pid])
        one.kill()
        one.wait()
        assert ends.drop_ended()
        assert not ends
