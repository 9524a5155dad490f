"""Programs that read hostile files: with few rights, and within limits."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.observe.symbols.confined import Answer, Limits, run_on_file

pytestmark = pytest.mark.any_kernel

ENOUGH = Limits(20)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """An open file that everyone may read."""
    path = tmp_path / "file"
    path.write_text("contents")
    path.chmod(0o644)
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


def sh(script: str, fd: int, text: bytes = b"", limits: Limits = ENOUGH) -> Answer:
    """What a shell prints; "$0" is the file."""
    return run_on_file(["/bin/sh", "-c", script], fd, text, limits)


def test_it_has_the_file_and_its_input(file: int) -> None:
    assert sh('cat "$0"; cat', file, b" and input") == Answer(b"contents and input", is_whole=True)


@pytest.mark.needs("chown")
def test_it_has_no_rights(file: int, tmp_path: Path) -> None:
    status = sh("id -u; id -G; cat /proc/self/status", file).output.decode()
    user, groups, *rows = status.splitlines()
    assert (user, groups) == ("65534", "65534")
    said = dict(row.split(":\t", 1) for row in rows if ":\t" in row)
    assert {said[name].strip("0") for name in ("CapEff", "CapPrm", "CapAmb")} == {""}
    assert said["NoNewPrivs"] == "1"
    assert said["Groups"].split() == []
    assert sh(f"touch {tmp_path}/new /tmp/purebpf-new && echo made", file).output == b""


@pytest.mark.needs("chown")
def test_it_has_no_network(file: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = sh("cat /proc/self/net/dev; cat /proc/self/net/tcp", file).output.decode()
    devices = [row.partition(":")[0].strip() for row in found.splitlines() if ":" in row]
    assert f"{port:04X}" not in found
    assert "eth0" not in devices


@pytest.mark.needs("chown")
def test_a_file_that_only_root_may_read_is_copied(file: int, monkeypatch) -> None:
    os.fchmod(file, 0o600)
    assert sh('cat "$0"', file) == Answer(b"contents", is_whole=True)
    monkeypatch.setattr("purebpf.observe.symbols.confined._COPIED", 3)
    with pytest.raises(OSError, match="too large to be copied"):
        sh('cat "$0"', file)


@pytest.mark.parametrize(
    "script", ["echo begun; exec sleep 1000", "echo begun; while :; do :; done"]
)
def test_a_program_over_its_time_is_ended(file: int, script: str) -> None:
    before = time.monotonic()
    assert sh(script, file, limits=Limits(0.5)) == Answer(b"begun\n", is_whole=False)
    assert time.monotonic() - before < 10


def test_a_program_over_its_memory_is_ended(file: int) -> None:
    script = "x=0123456789; while :; do x=$x$x; done"
    answer = sh(script, file, limits=Limits(20, memory=64 << 20))
    assert not answer.is_whole


def test_a_program_over_its_output_is_ended(file: int) -> None:
    answer = sh("yes", file, limits=Limits(20, output=1 << 20))
    assert not answer.is_whole
    assert 1 << 20 < len(answer.output) < 2 << 20


def test_it_is_stopped(file: int) -> None:
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()
    before = time.monotonic()
    command = ["/bin/sh", "-c", "echo begun; exec sleep 1000"]
    answer = run_on_file(command, file, b"", Limits(60), stopped.is_set)
    assert answer == Answer(b"begun\n", is_whole=False)
    assert time.monotonic() - before < 10


def test_nothing_is_left(file: int) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        sh("echo x", file)
    assert os.listdir("/proc/self/fd") == before
    assert Path(f"/proc/self/task/{os.getpid()}/children").read_text() == ""


def test_what_cannot_be_run(file: int) -> None:
    with pytest.raises(FileNotFoundError):
        run_on_file(["/nowhere/tool"], file, b"", Limits(1))
