"""`purebpf report` on files of `perf record --call-graph dwarf`: the stacks are whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import ROOT
from tests.support.nightly import by_day
from tests.support.oracles.copied_stacks import (
    WHOLE,
    build,
    our_stacks,
    perf_record,
    perf_stacks,
)

pytestmark = pytest.mark.needs("perf_event", "gcc", "perf")


def report(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "purebpf", "report", "-i", str(file), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment, timeout=120
    )


def paths(folded: str) -> dict[tuple[str, ...], int]:
    """Weights by user frames, root first, without the process."""
    found: dict[tuple[str, ...], int] = {}
    for line in folded.splitlines():
        path, _, weight = line.rpartition(" ")
        frames = tuple(name for name in path.split(";")[1:] if not name.endswith("_[k]"))
        found[frames] = found.get(frames, 0) + int(weight)
    return found


def deep(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Stacks of more than 100 frames that lack `main`, or have as many as there is room for.

    A program on its way down, or back, has whole ones of 100 and more.
    """
    names = [frame.get("name", "?") for frame in found["frames"]]
    return [
        stack
        for stack in found["stacks"]
        if len(stack["user"]) >= 127
        or (len(stack["user"]) > 100 and "main" not in {names[at] for at in stack["user"]})
    ]


@pytest.mark.parametrize(
    "flags", by_day([["-pie", "-fpie"], ["-no-pie"], ["-static"]], [["-static"]]), ids=" ".join
)
def test_every_sample_has_the_whole_chain(flags: list[str], tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    perf_record(file, "--call-graph", "dwarf", "-F", "999", build(tmp_path, *flags), "0.4")
    run = report(file, "--format", "json", "--strict")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    names = [frame.get("name", "?") for frame in found["frames"]]
    in_leaf = 0
    for stack in found["stacks"]:
        path = [names[at] for at in reversed(stack["user"])]
        assert "[" not in "".join(path), path
        if path[-1:] == ["leaf"]:
            assert path[-len(WHOLE) :] == WHOLE
            in_leaf += stack["weight"]
    assert in_leaf > 0.8 * found["total"] > 0
    assert not any("cut" in stack for stack in found["stacks"])
    assert found["loss"]["stacks_cut"] == 0


def test_every_frame_of_every_sample_is_the_one_that_perf_finds(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    perf_record(file, "--call-graph", "dwarf", "-F", "999", build(tmp_path), "0.4")
    ours, theirs = our_stacks(file), perf_stacks(file)
    assert ours.total() > 100
    # Where a process begins, in ld.so, perf stops short: those few are not compared.
    assert (ours & theirs).total() >= 0.97 * ours.total()


def test_stacks_that_the_copy_does_not_reach_are_cut_and_say_so(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    perf_record(file, "--call-graph", "dwarf", "-F", "999", build(tmp_path), "0.4", "large")
    run = report(file, "--format", "folded")
    cut = {path[:6] for path in paths(run.stdout) if "leaf" in path}
    assert cut == {("[cut]", "large", *WHOLE[1:])}
    assert "user stacks: " in run.stderr
    assert "(copy_short=" in run.stderr
    assert "record larger copies" in " ".join(run.stderr.split())
    assert report(file, "--strict").returncode == 3


def test_a_file_that_is_not_here_has_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    program = build(tmp_path)
    perf_record(file, "--call-graph", "dwarf", "-F", "999", program, "0.4")
    program.unlink()
    gone = report(file, "--format", "json")
    build(tmp_path, "-DOTHER", "-Wl,--build-id=0xabcdef0123456789")
    other = report(file, "--format", "json")
    for run in (gone, other):
        found = json.loads(run.stdout)
        assert found["about"]["files_not_found"] == [str(program)]
        assert found["loss"]["stacks_cut"] > 0.8 * found["total"]
        names = [frame.get("name") or frame["unknown"] for frame in found["frames"]]
        roots = {names[stack["user"][-1]] for stack in found["stacks"] if stack["user"]}
        assert "[no unwind info]" in roots
        assert "its file is not on this machine" in " ".join(run.stderr.split())
        assert run.returncode == 0
        assert "Traceback" not in run.stderr


def test_call_chains_at_the_limit_are_counted_as_truncated(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    program = build(tmp_path, "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    perf_record(file, "--call-graph", "fp", "-F", "999", program, "0.4", "deep")
    run = report(file, "--format", "json")
    found = json.loads(run.stdout)
    assert 0 < sum(stack["weight"] for stack in deep(found)) == found["loss"]["truncated"]
    assert report(file, "--strict").returncode == 3
    shallow = tmp_path / "shallow.data"
    perf_record(shallow, "--call-graph", "fp", "-F", "999", program, "0.4")
    assert json.loads(report(shallow, "--format", "json").stdout)["loss"]["truncated"] == 0


def test_copies_are_whole_beyond_the_limit_of_the_kernels_frames(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    perf_record(file, "--call-graph", "dwarf,32768", "-F", "99", build(tmp_path), "0.4", "deep")
    run = report(file, "--format", "json")
    found = json.loads(run.stdout)
    names = [frame.get("name", "?") for frame in found["frames"]]
    assert {names[stack["user"][-1]] for stack in deep(found)} == {"_start"}
    assert not any(stack.get("cut") for stack in deep(found))
    assert found["loss"]["truncated"] == 0


def test_call_chains_of_the_kernel_do_not_look_whole(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    perf_record(file, "--call-graph", "fp", "-F", "999", build(tmp_path), "0.4")
    run = report(file, "--format", "json")
    found = json.loads(run.stdout)
    names = [frame.get("name", "?") for frame in found["frames"]]
    ends = {
        stack.get("cut") for stack in found["stacks"] if "leaf" in {names[f] for f in stack["user"]}
    }
    assert ends == {"unverified"}
    assert "user stacks: " in run.stderr
    assert found["about"]["call_graph"] == "fp"
