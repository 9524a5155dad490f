"""Functions of a process that has other files: those of a container."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

LIBRARY = "#include <unistd.h>\nvoid work(void) { usleep(1000); }\n"
PROGRAM = "void work(void);\nint main(void) { for (;;) work(); }\n"
CONTAINER = (
    "mount -t tmpfs none {0} && cp {1}/libwork.so {1}/program {0} && cd {0} && exec ./program"
)


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A process whose library is at a path where our mount namespace has another file."""
    build, place = tmp_path / "build", tmp_path / "place"
    for folder in (build, place):
        folder.mkdir()
    flags = ["-shared", "-fPIC", "-x", "c", "-"]
    compiler = ["gcc", "-O1", "-o", "libwork.so", *flags]
    subprocess.run(compiler, input=LIBRARY, text=True, check=True, cwd=build)
    subprocess.run(compiler, input=LIBRARY, text=True, check=True, cwd=place)  # never mapped
    link = ["gcc", "-O1", "-x", "c", "-", "-o", "program", "-L.", "-lwork", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(link, input=PROGRAM, text=True, check=True, cwd=build)
    command = ["unshare", "-m", "sh", "-c", CONTAINER.format(place, build)]
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + 20
        while "libwork.so" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process.pid, place / "libwork.so"
        process.kill()


@pytest.mark.parametrize("by_path", [True, False])
def test_functions_of_another_mount_namespace(contained: tuple[int, Path], by_path: bool) -> None:
    pid, library = contained
    function = f"{library if by_path else library.name}:work"
    command = [sys.executable, "-m", "purebpf", "latency", "-p", str(pid), function, "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    rows = [line.split() for line in run.stdout.splitlines() if line.endswith(" work")]
    assert rows, run.stdout + run.stderr
    assert int(rows[0][0].replace(",", "")) > 20
