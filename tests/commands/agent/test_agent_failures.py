"""An agent where the host or the store fails it: windows wait or are counted, and it goes on."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from purebpf.services.agent import session
from purebpf.services.agent.config import parse_config
from tests.commands.agent.test_agent import (
    BY_FRAME_POINTERS,
    agent,
    configuration,
    delivered,
    end,
    fact,
    files,
    profiles,
    to_directory,
    to_store,
    until,
)
from tests.support.host import cgroups
from tests.support.host.http_sink import serving

pytestmark = [pytest.mark.needs("bpf", "perf_event"), pytest.mark.any_kernel]


def make_certificate(folder: Path, name: str) -> tuple[str, str]:
    """A certificate of localhost that signs itself, and its key."""
    certificate, key = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_windows_wait_for_a_store_with_the_right_certificate(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "right")
    wrong, _ = make_certificate(tmp_path, "wrong")
    spool = tmp_path / "state" / "spool" / "store"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def config(ca_file: str) -> str:
        sink = f"type = 'otlp'\nurl = '{store.url}'\nca_file = '{ca_file}'"
        return configuration(tmp_path, sink, more=BY_FRAME_POINTERS)

    with serving(context) as store:
        with agent("--config", config(wrong)) as process:
            until(lambda: len([*spool.glob("*")]) > 2, process)
            errors = end(process)
        assert store.received == []
        assert "CERTIFICATE_VERIFY_FAILED" in errors
        assert errors.count("CERTIFICATE_VERIFY_FAILED") == 1, "it is said once"
        waiting = {file.name for file in spool.iterdir()}
        with agent("--config", config(certificate)) as process:
            until(lambda: waiting <= delivered(store), process)
            end(process)


READ_ONLY = """
set -e
mount -t tmpfs none "$1"
shift
exec "$@"
"""


@pytest.mark.needs("mount_namespace", "unshare")
def test_a_disk_that_becomes_read_only_loses_windows_and_not_the_agent(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    prefix = ("unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(state))

    def remount(how: str) -> None:
        words = ["nsenter", "-t", str(process.pid), "-m", "mount", "-o", f"remount,{how}"]
        subprocess.run([*words, str(state)], check=True)

    with agent(
        "--config", to_store(tmp_path, "http://127.0.0.1:9"), "-v", prefix=prefix
    ) as process:
        spool = Path(f"/proc/{process.pid}/root{state}/spool/store")
        until(lambda: [*spool.glob("*")], process)
        remount("ro")
        names = {file.name for file in spool.iterdir()}
        time.sleep(3)
        assert {file.name for file in spool.iterdir()} == names
        remount("rw")
        until(lambda: len({*spool.iterdir()}) > len(names) + 1, process)
        last = max(spool.iterdir(), key=lambda file: file.stat().st_mtime)
        assert fact(profiles(last)[0], "dropped_windows") >= 1
        errors = end(process)
    assert "Read-only file system" in errors
    assert "Traceback" not in errors


@pytest.mark.needs("mount_namespace", "unshare")
def test_an_agent_without_a_place_for_its_windows_refuses_to_start(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    script = READ_ONLY.replace("none", "-o ro none")
    prefix = ("unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path / "state"))
    with agent("--config", to_directory(tmp_path), prefix=prefix) as process:
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert "Read-only file system" in errors or "EROFS" in errors
    assert "Traceback" not in errors


@pytest.mark.needs("gcc")
def test_what_finds_no_room_in_a_map_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen stacks, of a machine with more: what is not in a window is in its losses."""
    small = partial(session.ProfileOptions, hash_storage_size=16, stack_storage_size=16)
    monkeypatch.setattr(session, "ProfileOptions", small)
    path = to_directory(tmp_path, more="[cpu]\nfrequency = 499\ncall_graph = 'fp'\npython = false")
    said: list[str] = []
    with (
        busy(4),
        session.Agent(parse_config(Path(path).read_text()), said.append, is_once=True) as one,
    ):
        for _ in range(3):
            one.wait()
            one.end_window()
        one.stop()
    windows = [profiles(path)[0] for path in files(tmp_path)]
    assert len(windows) == 4
    for window in windows[:-1]:
        full = fact(window, "lost.map_full") + fact(window, "lost.map_busy")
        assert full > 0
        aside = fact(window, "idle")  # a CPU had nothing to do, while the shells waited for a disk
        assert fact(window, "counted") + full + aside == fact(window, "seen")
    assert said == []


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Shells with commands of many kinds, all the time."""
    loop = "while :; do ls -R /usr/share/doc >/dev/null; grep -r x /etc >/dev/null 2>&1; done"
    shells = [subprocess.Popen(["sh", "-c", loop], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for shell in shells:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


@contextmanager
def throttled(pid: int, share: float) -> Iterator[None]:
    """A process gets that share of one CPU."""
    period_us = 100_000
    with cgroups.limited(int(share * period_us), period_us) as folder:
        (folder / "cgroup.procs").write_text(str(pid))
        try:
            yield
        finally:
            (folder.parent / "cgroup.procs").write_text(str(pid))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.needs("cpu_limit")
def test_an_agent_with_a_hundredth_of_a_cpu_writes_late_and_whole_windows(tmp_path: Path) -> None:
    """What it could not take in time is in no window twice; then it catches up."""
    path = to_directory(tmp_path, more=BY_FRAME_POINTERS, window_s=5)
    with agent("--config", path) as process:
        until(lambda: files(tmp_path), process)
        with throttled(process.pid, 0.01):
            time.sleep(60)
            late = len(files(tmp_path))
        until(lambda: len(files(tmp_path)) > late + 3, process)
        errors = end(process)
    assert "Traceback" not in errors
    windows = [profiles(file) for file in files(tmp_path)]
    for services in windows:
        counted = fact(services[0], "counted")
        assert sum(sum(one.series.samples.values()) for one in services) == counted
    spans = sorted((each[0].window.started_ns, each[0].window.duration_ns) for each in windows)
    for (started, duration), (following, _) in pairwise(spans):
        assert started + duration <= following + 10**6


CHURN = """
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
extern char **environ;
int main(int argc, char **argv) {
    char *words[] = {argv[2], 0};
    for (int left = atoi(argv[1]); left > 0; left--) {
        pid_t pid;
        if (posix_spawn(&pid, argv[2], 0, 0, words, environ) || waitpid(pid, 0, 0) != pid)
            return 1;
    }
    return argc != 3;
}
"""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.needs("gcc")
def test_ten_thousand_short_processes(tmp_path: Path) -> None:
    """Counted to the last sample, of one service, and nothing of them stays."""
    program = tmp_path / "churn"
    subprocess.run(
        ["gcc", "-O2", "-x", "c", "-", "-o", program], input=CHURN, text=True, check=True
    )
    short = tmp_path / "shortlived"
    source = "int main(void) { for (volatile int i = 0; i < 300000; i++); return 0; }"
    subprocess.run(["gcc", "-O0", "-x", "c", "-", "-o", short], input=source, text=True, check=True)
    path = to_directory(tmp_path, window_s=5)
    with agent("--config", path) as process:
        until(lambda: files(tmp_path), process)
        descriptors = len(os.listdir(f"/proc/{process.pid}/fd"))
        subprocess.run([program, "10000", short], check=True)
        windows = len(files(tmp_path))
        until(lambda: len(files(tmp_path)) > windows + 2, process)
        assert len(os.listdir(f"/proc/{process.pid}/fd")) < descriptors + 200
        resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        errors = end(process)
    assert resident * os.sysconf("SC_PAGE_SIZE") < 120_000_000
    assert "Traceback" not in errors
    found = 0
    for file in files(tmp_path):
        services = profiles(file)
        total = sum(sum(each.series.samples.values()) for each in services)
        assert total == fact(services[0], "counted")
        for each in services:
            for sample, count in each.series.samples.items():
                if sample.comm == "shortlived":
                    found += count
                    mains = [entry.name == "main" for entry in sample.stack]
    assert found > 50
    assert mains
