"""A cgroup of a test's own, and being in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import probes
from tests.support.probe_machine import cpu_controller

__all__ = ["inside", "leave", "limited", "made"]


def _mount() -> Path:
    return next(Path(path) for path, kind in probes.mounts() if kind == "cgroup2")


def _own() -> Path:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    place = next(line.removeprefix("0::") for line in lines if line.startswith("0::"))
    return _mount() / place.lstrip("/")


@contextmanager
def made(parent: Path | None = None, name: str = "") -> Iterator[Path]:
    """A new cgroup, below `parent` or the root."""
    path = (parent or _mount()) / (name or f"purebpf-test-{os.getpid()}")
    path.mkdir()
    try:
        yield path
    finally:
        path.rmdir()


@contextmanager
def inside(cgroup: Path) -> Iterator[None]:
    """This process is in `cgroup`, and its new sockets belong to it."""
    before = _own()
    (cgroup / "cgroup.procs").write_text("0")
    try:
        yield
    finally:
        (before / "cgroup.procs").write_text("0")


def leave(cgroup: Path) -> None:
    """Move all that is in `cgroup` to where this process is."""
    for pid in (cgroup / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (_own() / "cgroup.procs").write_text(pid)


@contextmanager
def limited(quota_us: int, period_us: int) -> Iterator[Path]:
    """A cgroup that gets so much CPU time in each period."""
    root = cpu_controller()
    assert root is not None
    path = root / f"purebpf-limit-{os.getpid()}"
    path.mkdir()
    try:
        if (path / "cpu.max").exists():
            (path / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (path / "cpu.cfs_period_us").write_text(str(period_us))
            (path / "cpu.cfs_quota_us").write_text(str(quota_us))
        yield path
    finally:
        path.rmdir()
