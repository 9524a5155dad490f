"""Profiles have the chains of Python functions in whatever shape a service runs Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.tools.profile import ProfileOptions, Profiler
from tests.support.programs import pythons
from tests.support.programs.python_shapes import EMBEDDED, SHAPES, WORK, read_chains

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64")
EVERY = [
    pytest.param(python, id=f"{python.version[1]}-{python.path}") for python in pythons.every()
]
_DEADLINE_S = 60


class Truth(NamedTuple):
    """Samples in the marked function, those of them with another chain, and their processes.

    `unnamed`: samples with a frame without a name; `lost`: such frames, as the profile counts them.
    """

    total: int
    wrong: Counter[str]
    pids: set[int]
    unnamed: int
    lost: int


@contextmanager
def running(command: Sequence[str | Path], folder: Path, **variables: str) -> Iterator[int]:
    """The number of a program of which some process has written down a chain."""
    environment = os.environ | variables | {"CHAINS": str(folder)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, env=environment, start_new_session=True
    ) as process:
        try:
            until = time.monotonic() + _DEADLINE_S
            while not read_chains(folder):
                assert process.poll() is None, "the program has ended"
                assert time.monotonic() < until, "the program does not work"
                time.sleep(0.01)
            yield process.pid
        finally:
            assert process.stdin
            process.stdin.close()
            os.killpg(process.pid, signal.SIGKILL)  # its children, too


def compare(pid: int, folder: Path, *, seconds: float = 2, rate: int = 499) -> Truth:
    """What a profile of a process and its children has, and what the program says."""
    options = ProfileOptions(
        pids=(pid,), tree=True, frequency=rate, kernel_stacks=False, duration_s=seconds
    )
    with Profiler(options) as profiler:
        profiler.wait()
        profile = profiler.stop()
    chains = {f"{chain};marked" for chain in read_chains(folder)}
    total, unnamed, wrong, pids = 0, 0, Counter[str](), set()
    for row in profile.rows():
        frames = [frame for frame in row.user if frame.kind == "python"]  # leaf first
        names = [getattr(frame, "name", "") for frame in frames]
        if not all(names):
            unnamed += row.weight
        elif names[:2] == ["marked", "spin"]:
            total += row.weight
            pids.add(row.labels.pid)
            stack = ";".join(reversed(names))
            if stack not in chains:
                wrong[stack] += row.weight
    causes = {"python_unnamed", "python_cut"}
    lost = sum(cause.lost for cause in profile.loss.causes if cause.name in causes)
    return Truth(total, wrong, pids, unnamed, lost)


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_every_sample_has_the_chain_of_its_thread(shape: str, tmp_path: Path) -> None:
    newest = pythons.newest()
    assert newest is not None
    check(newest, shape, tmp_path, seconds=1)


@pytest.mark.nightly  # five shapes on each CPython, 3 s each
@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("python", EVERY)
def test_shapes_on_every_cpython(python: pythons.Python, shape: str, tmp_path: Path) -> None:
    if shape == "subinterpreter" and python.version < (3, 12):
        pytest.skip("before CPython 3.12, only frames of the main interpreter are read")
    check(python, shape, tmp_path, seconds=3)


@pytest.mark.needs("gcc")
def test_a_program_that_embeds_python_has_its_functions(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sysconfig as s; print(*map(s.get_config_var, NAMES))"]
    command[-1] = command[-1].replace("NAMES", "('INCLUDEPY', 'LIBDIR', 'LDVERSION', 'prefix')")
    names = subprocess.check_output(command, text=True).split()
    include, libraries, version, prefix = names
    source, binary = tmp_path / "service.c", tmp_path / "service"
    source.write_text(EMBEDDED)
    link = [f"-L{libraries}", f"-lpython{version}", f"-Wl,-rpath,{libraries}"]
    done = subprocess.run(
        ["gcc", source, "-o", binary, f"-I{include}", *link],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"this Python cannot be embedded: {done.stderr[-200:]}")
    program = tmp_path / "program.py"
    program.write_text(f"{WORK}\nwork()\n")
    with running([binary, program], tmp_path, PYTHONHOME=prefix) as pid:
        truth = compare(pid, tmp_path, seconds=1)
    assert truth.total
    assert truth.wrong.total() <= truth.total // 1000, truth


def check(python: pythons.Python, shape: str, folder: Path, *, seconds: float) -> None:
    program = folder / "program.py"
    program.write_text(SHAPES[shape])
    with running([python.path, program], folder) as pid:
        truth = compare(pid, folder, seconds=seconds)
    print(f"{python.version} {shape}: {truth.total} samples, {truth.wrong.total()} wrong")
    assert truth.total
    assert truth.wrong.total() <= truth.total // 1000, truth
    # a ring that is not read in time loses names, what is not in memory frames: both are counted
    assert truth.unnamed <= min(truth.lost, truth.total // 20), truth
    if shape in ("prefork", "forkserver"):
        assert pid not in truth.pids
