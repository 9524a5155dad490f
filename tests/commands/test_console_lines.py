"""Each `purebpf` line in the console blocks of the pages runs, or is marked with the reason."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.meta.test_console_blocks import LINES, PUREBPF
from tests.support.environment import ROOT, mounted
from tests.support.nightly import by_day
from tests.support.patience import until

pytestmark = [
    pytest.mark.any_kernel,
    pytest.mark.needs("bpf", "perf_event", "mount_namespace", "vmlinux_btf", "clang"),
]

NOT_RUN = {
    r"agent ": "the configuration of the reader: tests/commands/agent",
    r".*--container web": "a container: tests/commands/shared",
    r"fleet hub .*s3:": "a bucket of the reader: tests/unit/services/fleet/test_bucket.py",
    r"fleet (regressions|top)": "samples of many hosts: tests/commands/fleet",
    r"latency -e \./srv": "static probes: tests/commands/latency",
    r"latency ('|vfs_)(?!\./)": "functions of the kernel: tests/commands/latency, in guests",
    r"latency 'ext4": "the same",
    r"profile --format pprof -o /srv": "a folder of the reader: tests/commands/profile",
    r"record .*--program examples": "compiled examples: tests/commands/test_examples.py",
    r"report --records": "records of such a program: tests/commands/report",
    r"sampleip --(symbol spend|range)": "a program, addresses of a kernel: tests/commands/sampleip",
    r"stat --for-each-cgroup": "systemd's cgroups: tests/commands/stat",
    r"stat .*\{cycles,instructions\}": "a PMU: tests/commands/stat",
    r"stat -b 42": "programs of the reader: tests/commands/stat",
    r"tcp -- curl": "the network: tests/commands/tcp",
}
"""What lines begin with that are not run here, and why, or which tests run the like."""

STATUS = {
    "triage": {0, 10},
    "mem -- ./allocations": {7},
    "open -- sh -c 'cd /usr": {1},
    "summary -v --errno-summary": {2},
    "trace --failed -- cat": {1},
}
"""The exit statuses of a line that begins so; 0 for all others."""

ENDS = ("convert", "diff", "doctor", "inspect", "new", "report", "setup", "types -i", "vmlinux")
"""These need no Ctrl-C."""

SOURCES = {
    "nested_calls": "tests/data/nested_calls.c",
    "chain": "tests/data/nested_calls.c",
    "allocations": "tests/data/allocations.c",
    "phases": "tests/commands/types/phases.c",
    "page_faults": "tests/commands/types/faults.c",
    "file_faults": "tests/commands/summary/faults.c",
    "calls": "tests/commands/trace/calls.c",
}
"""Programs of the pages."""

SCRIPTS = {
    "faults": '#!/bin/sh\n[ $# = 0 ] && exec ./page_faults\nexec ./file_faults "$@"\n',
    "in-a-container": "#!/bin/sh\nexec unshare --mount true\n",
}
MAKEFILE = "all test:\n\t@sleep 0.5; ls >/dev/null\n"
SERVER = """
namespace db { struct Pool { __attribute__((noinline)) int get(int x); }; }
int db::Pool::get(int x) { volatile int y = x; return y; }
extern "C" __attribute__((noinline)) int parse(int x)
{ db::Pool pool; int s = 0; while (x--) s += pool.get(x); return s; }
extern "C" __attribute__((noinline)) int run(int x) { return parse(x) + 1; }
int main() { int s = 0; for (int i = 0; i < 500; i++) s += run(500); return s == 7; }
"""
TOOL = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
long seen;
static __attribute__((noinline)) int remember(long *at) { return __sync_fetch_and_add(at, 1); }
SEC("tracepoint/syscalls/sys_enter_openat") int on_open(void *context)
{ return remember(&seen) == 7; }
char LICENSE[] SEC("license") = "GPL";
"""
SPINS = """
import threading
lock = threading.Lock()
def work():
    for _ in range(2000):
        with lock:
            sum(range(999))
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
"""
BUSY = """
import time
print("ready", flush=True)
while True:
    sum(range(99999))
    time.sleep(0.001)
"""

_LOOK_S = 3.0
_PATIENCE_S = 240
_PIDS = re.compile(r"(?<=-[ptL] )\d+(,\d+)*|\bPID\b")
_CONSOLE = sorted({" ".join(words) for _, words in LINES if PUREBPF.search(words[0])})
TRIED = [
    line for line in _CONSOLE if not any(re.match(mark, line.partition(" ")[2]) for mark in NOT_RUN)
]
DAY = TRIED[::30]
"""All of them at night."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the lines name."""
    folder = tmp_path_factory.mktemp("console")
    for name in ("bin", ".venv/bin", "purebpf-venv/bin"):
        (folder / name).mkdir(parents=True)
        _write(
            folder / name / "purebpf", f'#!/bin/sh\nexec "{sys.executable}" -P -m purebpf "$@"\n'
        )
    for name in ("purebpf", "purebpf.pyz"):
        shutil.copy(folder / "bin/purebpf", folder / name)
    _compile(folder)
    _record(folder)
    return folder


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def _compile(folder: Path) -> None:
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-no-pie"]
    (folder / "srv.cc").write_text(SERVER)
    for name, source in SOURCES.items():
        subprocess.run(["gcc", *flags, "-o", folder / name, ROOT / source], check=True)
    for name in ("srv", "server"):
        subprocess.run(["g++", *flags, "-o", folder / name, folder / "srv.cc"], check=True)
    (folder / "tool.bpf.c").write_text(TOOL)
    asm = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    compiler = ["clang-19", "-g", "-O2", "-target", "bpf", asm, "-c", "tool.bpf.c"]
    subprocess.run([*compiler, "-o", "tool.bpf.o"], cwd=folder, check=True)
    for name, text in SCRIPTS.items():
        _write(folder / name, text)
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "spins.py").write_text(SPINS)
    (folder / "pages.bin").write_bytes(bytes(8 << 20))


def _record(folder: Path) -> None:
    """Write what earlier commands of a reader left: profiles, recordings, kernels' types."""
    (folder / "tests").symlink_to(ROOT / "tests")
    for name in ("vmlinux", "5.15.btf", "5.4.0-90.btf"):
        shutil.copyfile("/sys/kernel/btf/vmlinux", folder / name)
    for name in ("main", "branch", "monday", "tuesday", "out"):
        shutil.copy(ROOT / "tests/data/stacks.folded", folder / f"{name}.folded")
        for target in (f"{name}.json", f"{name}.json.gz"):
            _purebpf(folder, "convert", f"{name}.folded", "-o", target)
    (folder / "profiles").mkdir()
    shutil.copy(folder / "main.json.gz", folder / "profiles")
    events = ("-e", "page-faults", "-c", "1", "-e", "cpu-clock")
    _purebpf(folder, "record", "-g", "-d", *events, "-o", "other.data", "--", "ls", "-R", "/etc")


def _purebpf(folder: Path, *words: str) -> None:
    subprocess.run([folder / "bin/purebpf", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def busy() -> Iterator[int]:
    """The PID of a program that runs and waits, for all PIDs in the pages."""
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.kill()


def _measures(pid: int) -> bool:
    """Tell if a process has something of the kernel that measures, or serves."""
    for fd in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            if re.search(r"bpf-prog|bpf_link|perf_event|socket:", str(fd.readlink())):
                return True
        except OSError:  # it was closed just now
            continue
    return False


def run(line: str, place: Path, pid: int) -> tuple[int, str]:
    """Return the exit status and output of a line, which gets Ctrl-C when it has measured."""
    shutil.copy(place / "other.data", place / "perf.data")
    text = _PIDS.sub(str(pid), line.removesuffix(" &")).replace("/srv/", f"{place}/")
    prefix = mounted("mount -t bpf -o mode=0700 bpf /sys/fs/bpf")
    with subprocess.Popen(
        [*prefix, "sh", "-c", f"exec {text}"],
        cwd=place,
        env={**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            if " -- " not in line and not line.partition(" ")[2].startswith(ENDS):
                until(lambda: process.poll() is not None or _measures(process.pid))
                time.sleep(_LOOK_S)
                process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=_PATIENCE_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output


@pytest.mark.parametrize("line", by_day(TRIED, DAY))
def test_a_line_works(line: str, place: Path, busy: int) -> None:
    status, output = run(line, place, busy)
    command = line.partition(" ")[2]
    expected = next((also for key, also in STATUS.items() if command.startswith(key)), {0})
    assert status in expected, output
    assert "Traceback" not in output


def test_no_mark_is_left_over() -> None:
    commands = [line.partition(" ")[2] for line in _CONSOLE]
    for mark in (*NOT_RUN, *map(re.escape, STATUS)):
        assert any(re.match(mark, command) for command in commands), mark
    assert len(TRIED) > 190
