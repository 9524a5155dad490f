"""A JVM writes its perf map when purebpf asks; what only looks like one is not harmed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from purebpf.observe.processes.java_attach import is_java, write_java_perf_map
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.support.host.silent_fuse import silent

pytestmark = pytest.mark.needs("x86_64")
NOBODY = 65534
_JAVAC = "needs a JDK: javac is not installed"

PROGRAM = """
public class Busy {
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] arguments) {
        long sum = 0;
        for (int i = 0; i < 40; i++) sum += fib(25);
        System.out.println("ready " + sum);
        while (true) sum += fib(25);
    }
}
"""

# Takes SIGQUIT as a JVM does: then it listens, if there is the file, and answers what it is to.
FAKE = """
import os, signal, socket, sys
socket_path = f"/tmp/.java_pid{os.getpid()}"
def opens(*_):
    if os.path.exists(f"/tmp/.attach_pid{os.getpid()}"):
        server.bind(socket_path)
        server.listen()
server = socket.socket(socket.AF_UNIX)
signal.signal(signal.SIGQUIT, opens)
print("ready", flush=True)
while True:
    try:
        connection, _ = server.accept()
        break
    except OSError:
        signal.pause()
request = b""
while request.count(b"\\0") < 5:
    request += connection.recv(100)
print(request, flush=True)
connection.sendall(sys.argv[1].encode())
connection.close()
signal.pause()
"""

# Takes SIGQUIT, and does nothing.
IGNORES = """
import signal
signal.signal(signal.SIGQUIT, lambda *_: None)
print('ready', flush=True)
while True: signal.pause()
"""


@contextmanager
def started(*command: str | Path, user: int = 0) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, user=user, group=user
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("ready")
            yield process
        finally:
            process.kill()
            for name in (f".java_pid{process.pid}", f"perf-{process.pid}.map"):
                Path("/tmp", name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def busy() -> Iterator[Path]:
    if not shutil.which("javac"):
        pytest.skip(_JAVAC)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # another user runs it
        (folder / "Busy.java").write_text(PROGRAM)
        subprocess.run(["javac", folder / "Busy.java"], check=True)
        yield folder


def java(folder: Path, *options: str) -> list[str]:
    return ["java", "-Xshare:auto", "-Xmx64m", *options, "-cp", str(folder), "Busy"]


@pytest.mark.needs("bpf", "perf_event")
def test_java_methods_have_names(busy: Path) -> None:
    with started(*java(busy, "-XX:+PreserveFramePointer")) as process:
        options = ProfileOptions(
            pids=(process.pid,), frequency=499, kernel_stacks=False, duration_s=1,
            java_perf_map=True,
        )  # fmt: skip
        with Profiler(options) as profiler:
            profiler.wait()
            profile = profiler.stop()
    assert profile.hints == []
    weight = sum(row.weight for row in profile.rows())
    named = sum(
        row.weight for row in profile.rows() if any("Busy.fib" in f.name for f in row.user or ())
    )
    assert named > weight / 2


def test_another_users_jvm_writes_as_its_user(busy: Path) -> None:
    with started(*java(busy), user=NOBODY) as process:
        assert is_java(process.pid)
        assert write_java_perf_map(process.pid) == ""
        assert write_java_perf_map(process.pid) == ""  # its socket is there already
        path = Path(f"/tmp/perf-{process.pid}.map")
        assert path.stat().st_uid == NOBODY
        assert "Busy.fib" in path.read_text()
        assert not Path(f"/tmp/.attach_pid{process.pid}").exists()
        assert process.poll() is None


def test_a_jvm_without_signal_handlers_listens_from_its_start(busy: Path) -> None:
    with started(*java(busy, "-Xrs")) as process:
        assert write_java_perf_map(process.pid) == ""
        assert process.poll() is None


def test_what_sigquit_would_end_is_left_alone(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text("import time\nprint('ready', flush=True)\ntime.sleep(1000)\n")
    with started(sys.executable, program) as process:
        assert "SIGQUIT" in write_java_perf_map(process.pid)
        assert process.poll() is None


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("0\n", ""),
        ("1\nUnknown diagnostic command\n", "Unknown diagnostic command"),
        ("1\n\x1b[2Jgone\n", "?[2Jgone"),
        ("", "it answered ''"),
        ("7" * 100_000, "it answered '777"),
    ],
)
def test_what_it_answers_is_said(answer: str, problem: str, tmp_path: Path) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(FAKE)
    with started(sys.executable, fake, answer) as process:
        said = write_java_perf_map(process.pid)
        assert process.stdout
        assert "jcmd" in process.stdout.readline()
        assert process.poll() is None
    assert said.startswith(problem) if problem else said == ""


def test_what_opens_no_socket_is_left_after_a_while(tmp_path: Path) -> None:
    program = tmp_path / "ignores.py"
    program.write_text(IGNORES)
    before = sorted(os.listdir("/proc/self/fd"))
    with started(sys.executable, program) as process:
        assert "did not open its socket" in write_java_perf_map(process.pid, 0.5)
        assert process.poll() is None
        assert not is_java(process.pid)
        assert not Path(f"/tmp/.attach_pid{process.pid}").exists()
    assert write_java_perf_map(process.pid).startswith("the process is gone")
    assert sorted(os.listdir("/proc/self/fd")) == before


# What another user may have put into /tmp


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def second_name(path: Path, target: Path) -> None:
    path.hardlink_to(target)


def copy(path: Path, target: Path) -> None:
    path.write_bytes(target.read_bytes())
    os.chown(path, NOBODY, NOBODY)


def directory(path: Path, _target: Path) -> None:
    path.mkdir()


def pipe(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def listener(path: Path, _target: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize("name", ["perf-{}.map", ".java_pid{}"])
@pytest.mark.parametrize("put", [link, second_name, copy, directory, pipe, listener])
def test_a_path_that_another_user_made_is_refused(
    name: str, put: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    program = tmp_path / "fake.py"
    program.write_text(FAKE)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        target = Path(folder, "precious")
        target.write_text("precious\n")
        with started(sys.executable, program, "0\n") as process:
            path = Path("/tmp", name.format(process.pid))
            put(path, target)
            try:
                said = write_java_perf_map(process.pid)
            finally:
                path.rmdir() if put is directory else path.unlink()
            assert f"its /tmp/{path.name} is " in said
            assert process.poll() is None
        assert target.read_text() == "precious\n"


def test_the_map_is_made_before_the_jvm_opens_it(tmp_path: Path) -> None:
    program = tmp_path / "fake.py"
    program.write_text(FAKE)
    with started(sys.executable, program, "0\n") as process:
        path = Path(f"/tmp/perf-{process.pid}.map")
        assert write_java_perf_map(process.pid) == ""
        assert (path.stat().st_mode & 0o777, path.read_bytes()) == (0o600, b"")


@contextmanager
def own_tmp(mode: int, owner: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A program with a /tmp of that mode and owner in a mount namespace of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, owner, owner)
        Path(folder).chmod(mode)
        program = Path(folder, "ignores.py")
        program.write_text(IGNORES)
        words = f"mount --bind {folder} /tmp && exec {sys.executable} /tmp/ignores.py"
        with started("unshare", "-m", "sh", "-c", words) as process:
            yield process


def test_a_tmp_where_others_exchange_files_is_refused() -> None:
    with own_tmp(0o777) as process:
        assert "others can exchange files in its /tmp" in write_java_perf_map(process.pid)
    with own_tmp(0o755, NOBODY) as process:
        assert "its /tmp belongs to UID 65534" in write_java_perf_map(process.pid)
    with own_tmp(0o1777) as process:
        assert "did not open its socket" in write_java_perf_map(process.pid, 0.5)


@pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="there is no /dev/fuse")
def test_a_tmp_that_never_answers_is_not_asked() -> None:
    with silent("tmp") as pid:
        before = children()
        assert "its /tmp is in a file system (fuse)" in write_java_perf_map(pid)
        assert children() == before


def children() -> list[int]:
    return [
        int(pid)
        for path in Path("/proc/self/task").glob("*/children")
        for pid in path.read_text().split()
    ]


def test_the_child_that_waits_for_a_jvm_keeps_nothing_of_root(tmp_path: Path) -> None:
    program = tmp_path / "ignores.py"
    program.write_text(IGNORES)
    secret = os.memfd_create("of-root")
    with started(sys.executable, program) as process, ThreadPoolExecutor(1) as executor:
        known = children()
        answer = executor.submit(write_java_perf_map, process.pid, 3.0)
        until = time.monotonic() + 3
        open_files: list[str] = ["not looked at"]
        while len(open_files) != 3 and time.monotonic() < until:
            for pid in set(children()) - set(known):
                with suppress(FileNotFoundError):
                    open_files = sorted(
                        os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")
                    )
        assert [name.partition(":")[0] for name in open_files] == ["/tmp", "anon_inode", "pipe"]
        assert "did not open its socket" in answer.result()
    os.close(secret)
