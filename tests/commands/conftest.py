"""Programs that spend their time in a known way, and a way to run the commands on them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.host.faults import slow_host

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent / "workloads"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Workloads:
    """The compiled workloads, and the running of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for source in SOURCES.glob("*.c"):
            target = directory / source.stem
            flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread"]
            subprocess.run(["gcc", *flags, "-o", str(target), str(source)], check=True)

    def path(self, name: str) -> str:
        """The executable."""
        return str(self.directory / name)

    @contextmanager
    def running(self, name: str, *arguments: str) -> Iterator[int]:
        """Run one that never ends by itself; its pid, once it is in its loop."""
        process = subprocess.Popen([self.path(name), *arguments], stdout=subprocess.PIPE)
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def children(pid: int) -> list[int]:
    """The processes that the first thread of a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(number) for number in text.split()]


def thread_ids(pid: int, name: str) -> list[int]:
    """The threads of a process that have a name."""
    return [
        int(task.name)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if (task / "comm").read_text() == f"{name}\n"
    ]


@pytest.fixture(scope="session")
def workloads(tmp_path_factory: pytest.TempPathFactory) -> Workloads:
    """Compile the workloads once."""
    return Workloads(tmp_path_factory.mktemp("workloads"))


@pytest.fixture
def profile() -> Run:
    """Run `purebpf profile` with arguments, in front of it those of `prefix`."""

    def run(*arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [*prefix, sys.executable, "-m", "purebpf", "profile", "-v", *arguments]
        patience = 240 if slow_host() else 60
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=patience
        )

    return run
