"""Commands killed with SIGKILL at random moments: what they leave can be read or used again.

Each at 3 of them by day and at 6 at night; `PUREBPF_KILLS=50` takes eight minutes.
"""

from __future__ import annotations

import gzip
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from purebpf.results.formats.otlp_reader import read_document
from purebpf.tools.setup.__main__ import main as setup
from purebpf.wire.perf_data import HEADER
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Sample
from tests.commands.shared.test_killed_commands import PATIENCE_S, held, stopped
from tests.support.environment import ROOT
from tests.support.host.faults import alive, slow_host
from tests.support.host.users import public_bpffs

pytestmark = pytest.mark.needs("bpf", "perf_event")

NIGHT = bool(os.environ.get("PUREBPF_NIGHTLY"))
POINTS = int(os.environ.get("PUREBPF_KILLS") or (5 if slow_host() else 6 if NIGHT else 3))
SEED = 20261122
LONGEST_S = 3.5
"""From the start of a command until it has recorded for about two seconds, on an idle machine."""


SLOTS = 3


def moments(longest: float) -> Iterator[float]:
    """Seconds after the start, from nothing to well into the measurement."""
    chance = random.Random(SEED)
    for _ in range(POINTS):
        yield chance.uniform(0, longest)


def count_files(folder: str) -> int:
    """Files and directories below a folder, at this moment."""
    count = 0
    with suppress(OSError), os.scandir(folder) as scan:
        for entry in scan:
            count += 1 + (count_files(entry.path) if entry.is_dir(follow_symlinks=False) else 0)
    return count


def kill_at(words: list[str], folder: str, files: int, *, is_growing: bool) -> None:
    """Run a command, and kill it once there are so many files below a folder.

    Most of its time is Python's start: few moments of the clock meet what it changes.
    """
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=ROOT) as process:
        while process.poll() is None:
            if (count := count_files(folder)) == files or is_growing == (count > files):
                break
        process.kill()


def longest_s(words: list[str], has_begun: Callable[[int], object]) -> float:
    """The same on this machine, as it is now: a command is started, and waited for."""
    null = subprocess.DEVNULL
    begun = time.monotonic()
    with subprocess.Popen(words, stdout=null, stderr=null, cwd=ROOT) as process:
        try:
            while not has_begun(process.pid):
                assert process.poll() is None, "it ended by itself"
                assert time.monotonic() - begun < 120
                time.sleep(0.05)
            return max(LONGEST_S, 2 * (time.monotonic() - begun))
        finally:
            process.kill()


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "purebpf", name, *arguments]


@contextmanager
def killed_after(seconds: float, words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs for that long, and is killed at the end."""
    null = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=null, stderr=null, cwd=ROOT) as process:
        try:
            time.sleep(seconds)
            assert process.poll() is None, "it ended by itself"
            yield process
        finally:
            process.kill()


@contextmanager
def busy() -> Iterator[int]:
    """A process that is always on a CPU."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def recorded_size(path: Path) -> int:
    """Bytes of records that the file tells of; 0: it was killed before it recorded."""
    head = path.read_bytes()[: HEADER.size]
    return int(HEADER.unpack(head)[6]) if len(head) == HEADER.size else 0


def samples(path: Path) -> int:
    data = path.read_bytes()
    file = PerfData(lambda at, size: data[at : at + size], len(data), str(path))
    return sum(isinstance(placed.record, Sample) for placed in file.records())


def perf(path: Path, *arguments: str) -> str:
    """What perf says about the file; a warning fails the test."""
    run = subprocess.run(
        ["perf", *arguments, "-i", str(path)], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stderr
    return run.stdout


@pytest.mark.needs("perf")
def test_what_record_leaves_can_be_read(tmp_path: Path) -> None:
    target = tmp_path / "perf.data"
    sizes = []
    with busy() as pid:
        words = command("record", "-g", "-F", "999", "-p", str(pid), "-o", str(target))
        longest = longest_s(words, lambda _: any(map(recorded_size, tmp_path.iterdir())))
        for path in tmp_path.iterdir():
            path.unlink()
        for moment in moments(longest):
            target.write_text("old")
            with killed_after(moment, words):
                pass
            assert target.read_text() == "old"
            left = [path for path in tmp_path.iterdir() if path != target]
            assert len(left) <= 1
            for path in left:
                if recorded_size(path):
                    sizes.append(readable_samples(path))
                path.unlink()
    assert len(sizes) >= POINTS // 4, "most were killed too early to prove anything"
    assert max(sizes) > 100


def readable_samples(path: Path) -> int:
    """How many samples are in it, as we and perf count them."""
    found = samples(path)
    report = subprocess.run(
        command("report", "-i", str(path), "--format", "folded"),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert report.returncode == 0, report.stderr
    assert sum(int(line.rpartition(" ")[2]) for line in report.stdout.splitlines()) == found
    script = perf(path, "script", "-F", "comm,pid,time,ip")
    assert len(re.findall(r"^\S+ +\d+ +[\d.]+: *$", script, re.MULTILINE)) == found
    if found:
        assert re.search(rf"SAMPLE events: +{found}\b", perf(path, "report", "--stats"))
    return found


STREAMS = {
    "exec": (),
    "open": (),
    "trace": ("-e", "openat,read"),
    "lock": ("--slower", "0"),
    "io": (),
    "tcp": (),
    "mem": ("--show", "faults"),
}
"""Commands that write events, or what they counted, to `-o FILE`."""


def written_bytes(pid: int, folder: Path) -> int:
    """Of the file that a process writes below a folder, which has no name yet."""
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            if os.readlink(entry).startswith(f"{folder}/"):
                return entry.stat().st_size
    return 0


def test_what_a_command_writes_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """All at once, killed from the moment on in which one has written: the old files stay."""
    for moment in list(moments(1))[: max(1, POINTS // 6)]:
        with ExitStack() as stack:
            processes = []
            for name, arguments in STREAMS.items():
                target = tmp_path / name
                target.write_text("old")
                words = command(name, *arguments, "-o", str(target))
                null = subprocess.DEVNULL
                process = subprocess.Popen(words, stdout=null, stderr=null, cwd=ROOT)
                stack.enter_context(process)
                stack.callback(process.kill)
                processes.append(process)
            deadline = time.monotonic() + PATIENCE_S
            while not any(written_bytes(process.pid, tmp_path) for process in processes):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            time.sleep(moment)
            for process in processes:
                assert process.poll() is None, "it ended by itself"
                made = stopped(process)
                process.kill()
                process.wait()
                assert not alive(made)
        left = {path.name: path.read_text() for path in tmp_path.iterdir()}
        assert left == dict.fromkeys(STREAMS, "old")


def test_nothing_of_a_live_page_stays() -> None:
    """Neither objects of BPF nor the port; and the next one starts."""
    had_maps = 0
    words = command("profile", "--serve", "-F", "99")
    for moment in moments(longest_s(words, held)):
        with killed_after(moment, words) as process:
            made = stopped(process)
            had_maps += bool(made)
        assert not alive(made)
    assert had_maps >= POINTS // 4, "most were killed too early to prove anything"
    assert not held(os.getpid())
    with subprocess.Popen(
        command("profile", "--serve", "-F", "99", "--format", "json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stderr is not None
        assert "live flame graph: " in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output.startswith("{")


@pytest.mark.skipif(
    "PUREBPF_KILLS" not in os.environ, reason="an agent is killed for PUREBPF_KILLS=N only"
)
def test_windows_of_a_killed_agent_are_whole(tmp_path: Path) -> None:
    """And the next agent starts, and sends those that wait."""
    path = tmp_path / "agent.toml"
    path.write_text(
        f"[agent]\nstate = '{tmp_path}/state'\nwindow_s = 1\njitter_s = 0\nbudget = 0.0\n"
        "[cpu]\ncall_graph = 'fp'\npython = false\n"
        f"[[sink]]\ntype = 'dir'\npath = '{tmp_path}/out'\n"
    )
    words = command("agent", "--config", str(path))
    read: set[str] = set()
    for moment in moments(longest_s(words, lambda _: [*tmp_path.rglob("*.otlp.gz")])):
        with killed_after(moment, words):
            pass
        for window in tmp_path.rglob("*.otlp.gz"):
            if window.parent.name != "new":
                assert read_document(gzip.decompress(window.read_bytes()))
                read.add(window.name)
    assert len(read) >= POINTS // 4, "most were killed too early to prove anything"
    subprocess.run([*words, "--once"], cwd=ROOT, check=True, timeout=120)
    assert read <= {window.name for window in (tmp_path / "out").rglob("*.otlp.gz")}
    assert not [*(tmp_path / "state/spool").rglob("*.otlp.gz")]


@pytest.mark.needs("bpffs", "vmlinux_btf")
@pytest.mark.parametrize("action", ["pin", "unpin"])
def test_setup_repairs_what_was_killed(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Status reads what is left, pin completes it, and unpin leaves nothing."""
    partial = 0
    with public_bpffs() as folder:
        where = ("--bpffs", folder)
        pin = ("pin", "--user", "4711", "--slots", str(SLOTS), *where)
        words = command("setup", *(pin if action == "pin" else ("unpin", *where)))
        assert setup(list(pin)) == 0
        files = count_files(folder)
        assert setup(["unpin", *where]) == 0
        chance = random.Random(SEED)
        for _ in range(0, POINTS, 2):
            if action == "unpin":
                assert setup(list(pin)) == 0
            kill_at(words, folder, chance.randrange(1, files), is_growing=action == "pin")
            capsys.readouterr()
            assert setup(["status", *where]) in (0, 1)
            states = re.findall(r"^4711 +\d+ +(\S+)", capsys.readouterr().out, re.MULTILINE)
            partial += 0 < len(states) < SLOTS or "broken" in states
            assert setup(list(pin)) == 0
            capsys.readouterr()
            assert setup(["status", *where]) == 0
            states = re.findall(r"^4711 +\d+ +(\S+)", capsys.readouterr().out, re.MULTILINE)
            assert states == ["free"] * SLOTS
            assert setup(["unpin", *where]) == 0
            assert not os.path.exists(f"{folder}/purebpf")
    assert not held(os.getpid())
    print(f"{partial} of {len(range(0, POINTS, 2))} kills left a part")
