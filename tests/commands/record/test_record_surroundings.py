"""The recorder without privileges, killed, and in the surroundings that matter to perf events."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.environment import mounted, run, said, start
from tests.support.host.privilege import as_user

pytestmark = pytest.mark.needs("perf_event")

PATIENCE_S = 120


@contextmanager
def recording(target: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A recorder that says that it records."""
    with start("record", "-o", str(target), *arguments) as process:
        assert process.stderr is not None
        try:
            while "Ctrl-C" not in process.stderr.readline():
                assert process.poll() is None
            yield process
        finally:
            process.kill()


@pytest.mark.needs("setpriv", "mount_namespace")
def test_an_ordinary_user_sees_what_is_missing() -> None:
    prefix = as_user("ordinary")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        result = run("record", "-a", "-o", f"{folder}/perf.data", "0.3", prefix=prefix)
        assert os.listdir(folder) == []
    assert (result.returncode, result.stdout) == (1, "")
    assert said(result).startswith("purebpf record: run it as root: sudo ")
    assert "CAP_PERFMON" in said(result)
    assert "Traceback" not in result.stderr


@pytest.mark.needs("mount_namespace")
def test_a_full_disk(tmp_path: Path) -> None:
    """The disk fills while the kernel's mappings are written; the old file survives."""
    prefix = mounted(
        f"mount -t tmpfs -o size=16k tmpfs {tmp_path}", f"echo old > {tmp_path}/perf.data"
    )
    script = (*prefix, "sh", "-c", f'"$@"; echo status $?; ls {tmp_path}; cat {tmp_path}/*', "sh")
    result = run("record", "-o", f"{tmp_path}/perf.data", "-a", "-g", "9", prefix=script)
    assert result.stdout.split() == ["status", "1", "perf.data", "old"]
    assert said(result).endswith("write(2) failed with ENOSPC. No space left on device")


@pytest.mark.needs("mount_namespace", "perf")
def test_a_disk_that_fills_while_it_records(tmp_path: Path) -> None:
    """What was recorded until then is kept, and perf reads it."""
    full, left = tmp_path / "full", tmp_path / "left"
    full.mkdir()
    prefix = mounted(f"mount -t tmpfs -o size=1m tmpfs {full}")
    keep = f'"$@"; status=$?; cp {full}/perf.data.*.part {left}; ls {full}; exit $status'
    result = run(
        *("record", "-o", f"{full}/perf.data", "-m", "16"),  # rounds smaller than the disk
        *("-e", "page-faults", "-c", "1", "-g", "--"),
        *("sh", "-c", "while :; do /bin/true; done"),
        prefix=(*prefix, "sh", "-c", keep, "sh"),
    )
    assert (result.returncode, "perf.data\n" in result.stdout) == (1, False)
    assert "write(2) failed with ENOSPC. No space left on device. What was recor" in said(result)
    assert f"recorded until then is in {full}/perf.data." in said(result)
    stats = subprocess.run(
        ["perf", "report", "--stats", "-i", str(left)], capture_output=True, text=True, check=True
    )
    assert stats.stderr == ""
    assert re.search(r"SAMPLE events: +\d{3,}", stats.stdout)


@pytest.mark.needs("setpriv", "mount_namespace")
def test_a_file_of_another_user_is_not_overwritten() -> None:
    """It is not replaced, though who owns the folder could."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        target = Path(folder, "perf.data")
        target.write_text("old")
        prefix = as_user("ordinary")
        result = run("record", "-o", str(target), "--", "true", prefix=prefix)
        assert target.read_text() == "old"
        assert os.listdir(folder) == ["perf.data"]
    assert result.returncode == 1
    assert said(result).endswith("open(2) failed with EACCES. Permission denied")


def test_killed_while_it_records(tmp_path: Path) -> None:
    """The old file survives, whole."""
    target = tmp_path / "perf.data"
    target.write_text("old")
    with recording(target) as process:
        process.kill()
        process.communicate()
    assert target.read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_end(number: signal.Signals, tmp_path: Path) -> None:
    target = tmp_path / "perf.data"
    with recording(target, "-p", str(os.getpid())) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "lost: " in errors
    assert target.read_bytes()[:8] == b"PERFILE2"
