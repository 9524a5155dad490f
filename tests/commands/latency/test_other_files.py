"""Functions of processes that have other files than this machine: containers, and some others."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from purebpf.tools.latency import CallLatency, LatencyOptions
from purebpf.tools.latency.functions import Wanted, find_functions
from tests.commands.conftest import ROOT
from tests.support.nightly import by_day
from tests.support.programs.own_files import (
    LIBRARY,
    WAYS,
    build_program,
    running_with_own_library,
)

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

CALLS = 37
OVERLAY = (
    "mount -t overlay overlay -o lowerdir={0}/build,upperdir={1}/up,workdir={1}/work {1}/merged"
    " && cd {1}/merged && exec ./program wait"
)


@pytest.fixture(params=by_day(WAYS, ["mount namespace", "update"]))
def process(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[int, Path]]:
    """A process with its own library; the dynamic linker would take another one here."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "place"))
    with running_with_own_library(request.param, tmp_path) as (pid, path):
        yield pid, path


def purebpf(*arguments: str) -> str:
    """The output of a command."""
    command = [sys.executable, "-P", "-m", "purebpf", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_library_by_name(process: tuple[int, Path]) -> None:
    pid, _ = process
    table = purebpf("latency", "-p", str(pid), f"{LIBRARY}:work", "1")
    rows = [line.split() for line in table.splitlines() if line.endswith(" work")]
    assert rows, table
    assert int(rows[0][0].replace(",", "")) > 20


def test_a_library_by_path(process: tuple[int, Path], request: pytest.FixtureRequest) -> None:
    """The path has another meaning for a container, and an older one for a running program."""
    pid, path = process
    if "environment" in request.node.name:  # its library is at another path
        path = Path(path.parent.parent, "build", LIBRARY)
    table = purebpf("latency", "-p", str(pid), f"{path}:work", "1")
    rows = [line.split() for line in table.splitlines() if line.endswith(" work")]
    assert rows, table
    assert int(rows[0][0].replace(",", "")) > 20


def test_static_probes_by_name(process: tuple[int, Path]) -> None:
    pid, _ = process
    pair = f"{LIBRARY}:own:begin,end"
    table = purebpf("latency", "-p", str(pid), "-e", pair, "1")
    rows = [line.split() for line in table.splitlines() if line.endswith("own:begin,end")]
    assert rows, table
    assert int(rows[0][0].replace(",", "")) > 20


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that see the files of one image through an overlay each."""
    build_program(tmp_path / "build")
    with ExitStack() as stack:
        processes = []
        for name in ("one", "two"):
            for part in ("up", "work", "merged"):
                (tmp_path / name / part).mkdir(parents=True)
            script = OVERLAY.format(tmp_path, tmp_path / name)
            process = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE)
            processes.append(stack.enter_context(process))
            stack.callback(process.kill)
        deadline = time.monotonic() + 20
        while any(LIBRARY not in Path(f"/proc/{one.pid}/maps").read_text() for one in processes):
            if any(one.poll() is not None for one in processes):
                pytest.skip("no mount of overlayfs on the file system of this test")
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield processes


@pytest.mark.parametrize("only_count", [False, True])
def test_containers_of_one_image_share_the_code(
    containers: list[subprocess.Popen[bytes]],
    only_count: bool,  # noqa: FBT001 - of the test
) -> None:
    """The kernel has one file below the overlays: a probe for each would count calls twice."""
    pids = tuple(process.pid for process in containers)
    words = (f"{LIBRARY}:work", f"{LIBRARY}:f*")
    # probes of one place may be attached as one or as two, which depends on how many there are
    names = [function.name for function in find_functions(words, Wanted(pids=pids))]
    assert sorted(names) == ["frame_dummy", "free", "work"]
    with CallLatency(LatencyOptions(words, pids=pids, only_count=only_count)) as session:
        for process in containers:
            process.communicate(b"c" * CALLS)
        session.stop()
    counts = sorted((row.function, row.calls) for row in session.rows)
    assert counts == [("free", 2 * CALLS), ("work", 2 * CALLS)]
