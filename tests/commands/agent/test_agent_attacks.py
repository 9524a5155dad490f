"""What other users try against the agent: its lock, its spool, a directory that it writes to."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.errors import KernelError
from purebpf.results import Labels, Profile
from purebpf.results.formats.otlp_series import series_of
from purebpf.services.agent.config import Metrics, Sink
from purebpf.services.agent.host_lock import HostLock, SecondAgentError
from purebpf.services.agent.metrics.exporter import Exporter
from purebpf.services.agent.metrics.families import State
from purebpf.services.agent.rows import on_cpu
from purebpf.services.agent.services import Process, Services
from purebpf.services.agent.sinks import make_sink
from purebpf.services.agent.spool import Spool

pytestmark = [
    pytest.mark.any_kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user, too"),
    pytest.mark.skipif(
        not Path("/usr/bin/python3").exists(), reason="needs a Python that every user may run"
    ),
]

NOBODY = 65534
STATE = State(19, 1, 0, 0, 0, ())
NAME = "20261123T140000Z-cpu-0123abcd-0.otlp.gz"

HOLD = """
import fcntl, os, sys, time
fd = os.open("/proc/self/ns/pid", os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
how = sys.argv[1]
if how == "user namespace":
    import ctypes
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    assert "000001ff" in open("/proc/self/status").read(), "all capabilities, there"
elif how == "orphan" and os.fork():
    os._exit(0)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(how: str, user: int) -> Iterator[int]:
    """A process of a user that has locked what agents lock."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["/usr/bin/python3", "-c", HOLD, how],
        stdin=pipe,
        stdout=pipe,
        text=True,
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "locked\n"
            yield process.pid
        finally:
            process.stdin.close()
            process.stdout.read()  # until the last one with the lock has ended


@pytest.mark.parametrize("how", ["plainly", "user namespace", "orphan"])
def test_a_user_who_takes_the_lock_stops_no_agent(how: str) -> None:
    if how == "user namespace" and not may_unshare():
        pytest.skip("users may not make user namespaces here")
    with holding(how, NOBODY) as pid, HostLock() as lock:
        assert f"process {pid}" in lock.problem
        assert "cannot be one" in lock.problem
    with HostLock() as lock:
        assert lock.problem == ""


def may_unshare() -> bool:
    words = ["unshare", "--user", "true"]
    return not subprocess.run(words, check=False, user=NOBODY, stderr=subprocess.DEVNULL).returncode


def test_one_with_its_capabilities_is_an_agent() -> None:
    with holding("plainly", 0) as pid, pytest.raises(SecondAgentError, match=f"process {pid} "):
        HostLock()


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of root."""
    path = tmp_path / "precious" / NAME
    path.parent.mkdir()
    path.write_text("precious")
    return path


def test_a_spool_in_the_directory_of_another_user_is_refused(
    tmp_path: Path, precious: Path
) -> None:
    state = tmp_path / "state"
    (state / "spool").mkdir(parents=True)
    (state / "spool" / "new").symlink_to(precious.parent)
    for path in (state, state / "spool"):
        os.chown(path, NOBODY, NOBODY)
    with pytest.raises(KernelError, match=f"belongs to UID {NOBODY}"):
        Spool(str(state / "spool"), ["a"], max_bytes=1, max_age_s=1)
    assert precious.read_text() == "precious"


def test_nothing_is_made_below_a_directory_that_others_can_exchange(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(KernelError, match="other users can write to it"):
        Spool(str(tmp_path / "state" / "spool"), ["a"], max_bytes=1, max_age_s=1)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("where", ["day", "host", "part", "name"])
def test_a_directory_of_windows_is_written_through_no_link(
    where: str, tmp_path: Path, precious: Path
) -> None:
    out = tmp_path / "out"
    host = out / "2026-11-23" / os.uname().nodename
    link = {"day": host.parent, "host": host, "part": host / f".{NAME}.part", "name": host / NAME}
    link[where].parent.mkdir(parents=True)
    link[where].symlink_to(precious if where in ("part", "name") else precious.parent)
    outcome = make_sink(Sink("dir", path=str(out))).send(NAME, b"window")
    assert precious.read_text() == "precious"
    assert [path.name for path in precious.parent.iterdir()] == [NAME]
    assert outcome.is_done == (where in ("part", "name"))
    if outcome.is_done:
        assert (host / NAME).read_bytes() == b"window"
        assert not (host / NAME).is_symlink()


@pytest.mark.parametrize("where", ["name", "part", "earlier part"])
def test_metrics_are_written_through_no_link(where: str, tmp_path: Path, precious: Path) -> None:
    folder = tmp_path / "node-exporter"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    text = folder / "purebpf.prom"
    link = {
        "name": text,
        "part": folder / ".purebpf.prom.part",
        # as prometheus_client names it
        "earlier part": folder / f"purebpf.prom.{os.getpid()}.{threading.current_thread().ident}",
    }[where]
    precious.chmod(0o600)
    link.symlink_to(precious)
    with Exporter(Metrics(textfile=str(text)), 60, lambda: STATE) as exporter:
        exporter.window()
    assert precious.read_text() == "precious"
    assert precious.stat().st_mode & 0o777 == 0o600
    assert text.read_text().startswith("# HELP purebpf")
    assert text.stat().st_mode & 0o777 == 0o644
    assert not text.is_symlink()


def test_a_name_beyond_text_ends_no_metrics(tmp_path: Path) -> None:
    text = tmp_path / "purebpf.prom"
    profile = Profile()
    profile.add((), (), 5, Labels("a\udcff\x1b[2J", 1))
    services = Services((), (), "host")
    with Exporter(Metrics(textfile=str(text)), 60, lambda: STATE) as exporter:
        series = series_of(on_cpu(profile), lambda labels: services.resource(Process(labels.comm)))
        exporter.counts.add_window("cpu", 10**9, series, {}, {})
        exporter.window()
    assert 'purebpf_cpu_seconds_total{service="a??[2J"} 5.0' in text.read_text()


def test_a_pipe_in_the_place_of_a_part_does_not_block(tmp_path: Path) -> None:
    host = tmp_path / "2026-11-23" / os.uname().nodename
    host.mkdir(parents=True)
    os.mkfifo(host / f".{NAME}.part")
    assert make_sink(Sink("dir", path=str(tmp_path))).send(NAME, b"window").is_done
    assert (host / NAME).read_bytes() == b"window"
