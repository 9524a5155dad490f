"""A process of another user, with controls and markup in all of its names, in every command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.environment import run
from tests.support.host import cgroups
from tests.support.nightly import by_day

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "vmlinux_btf"),
    pytest.mark.skipif(
        not Path("/usr/bin/python3").exists(), reason="needs a Python that every user may run"
    ),
]

NOBODY = 65534
EVIL = "\x1b[2J\n<b>evil"
FOLDER, FILE = "x\x1b[31m<", "script><script>alert(1)<\nlost: nothing\r"
"""Together a path with </script> in it."""

PROGRAM = r"""
import ctypes, os, socket, subprocess, sys, threading, time
evil = "\x1b[2J\n<b>evil"
libc = ctypes.CDLL(None)
def name():
    libc.prctl(15, evil.encode(), 0, 0, 0)
def spin():
    name()
    lock = threading.Lock()
    while True:
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            pass
        lock.acquire(timeout=0.001)
        lock.release()
        time.sleep(0.001)
spin.__code__ = spin.__code__.replace(co_name=evil, co_filename="/" + evil)
if sys.version_info >= (3, 11):
    spin.__code__ = spin.__code__.replace(co_qualname=evil)
def call():
    name()
    file = os.memfd_create(evil)
    while True:
        os.write(file, b"text")
        subprocess.run(["/bin/true", evil, "</script><script>alert(1)</script>"])
        try:
            open("/no\x1b[2J\nsuch" + evil)
        except OSError:
            pass
        end = socket.socket()
        end.connect_ex(("127.0.0.1", 1))
        end.close()
        time.sleep(0.05)
for work in (spin, call):
    threading.Thread(target=work, daemon=True).start()
name()
print("ready", flush=True)
sys.stdin.read()
"""


CGROUP = "\x1b[2J<i>evil\r.service"
"""Of a subtree that was delegated to the user; with the end that units have."""


@pytest.fixture(scope="module")
def below() -> Iterator[Path]:
    """A cgroup with that name."""
    with cgroups.made() as parent, cgroups.made(parent, CGROUP) as path:
        yield path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Its PID."""
    root = tmp_path_factory.mktemp("hostile")
    for above in (root, *root.parents):
        if above != Path("/tmp") and above.stat().st_uid == os.getuid():
            above.chmod(above.stat().st_mode | 0o011)
    folder = root / FOLDER
    folder.mkdir(mode=0o755)
    program = folder / FILE
    shutil.copy("/usr/bin/python3", program)
    pipe = subprocess.PIPE
    environment = {"PYTHONHOME": "/usr"}
    with subprocess.Popen(
        [str(program), "-c", PROGRAM, EVIL],
        stdin=pipe,
        stdout=pipe,
        text=True,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        env=environment,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


COMMANDS = {
    "profile": ("-F", "199", "-p", "PID", "0.5"),
    "profile, all": ("profile", "-F", "199", "-v", "0.5"),
    "profile, bcc": ("profile", "-F", "199", "--layout", "bcc", "-p", "PID", "0.5"),
    "profile, lines": ("profile", "-F", "199", "--lines", "-p", "PID", "0.5"),
    "profile, page": ("profile", "-F", "199", "--format", "html", "-p", "PID", "0.5"),
    "offcpu": ("-p", "PID", "0.5"),
    "offcpu, page": ("offcpu", "--format", "html", "--waker", "-p", "PID", "0.5"),
    "wall": ("-p", "PID", "0.5"),
    "wall, page": ("wall", "--format", "html", "-p", "PID", "0.5"),
    "summary": ("--mode", "thread", "-p", "PID", "0.5"),
    "runqlat": ("-P", "0.5", "1"),
    "cpudist": ("-P", "0.5", "1"),
    "exec": ("0.5",),
    "open": ("0.5",),
    "open, table": ("open", "--summary", "0.5"),
    "tcp": ("0.5",),
    "triage": ("0.5",),
    "dump": ("PID",),
    "trace": ("-p", "PID", "0.5"),
    "trace, paths": ("trace", "-y", "-p", "PID", "0.5"),
    "trace, as strace": ("trace", "-y", "--format", "strace", "-p", "PID", "0.5"),
    "mem": ("--show", "allocated", "--tree", "-p", "PID", "1"),
    "stat": ("--per-thread", "-p", "PID", "0.5"),
    "latency": ("libc.so.6:write", "--by", "comm", "-p", "PID", "0.5"),
    "latency, slow": (
        "latency",
        "libc.so.6:write",
        "--slower",
        "0",
        "--stacks",
        "-p",
        "PID",
        "0.5",
    ),
    "top": ("-F", "199", "--by", "process", "-p", "PID", "0.5"),
    "lock": ("-p", "PID", "--by", "process", "0.5"),
    "stat, csv": ("stat", "--format", "csv", "--per-thread", "-p", "PID", "0.5"),
    "summary, csv": ("summary", "--format", "csv", "--mode", "thread", "-p", "PID", "0.5"),
    "latency, csv": (
        *("latency", "libc.so.6:write", "--by", "comm", "--format", "csv"),
        *("-p", "PID", "0.5"),
    ),
    "lock, csv": ("lock", "--format", "csv", "-p", "PID", "--by", "process", "0.5"),
    "profile, csv": ("profile", "--format", "csv", "-F", "199", "-p", "PID", "0.5"),
}


CGROUPS = {
    "trace": ("--cgroups", "-p", "PID", "1"),
    "trace, json": ("trace", "--cgroups", "--format", "json", "-p", "PID", "1"),
    "exec": ("--cgroups", "1"),
    "open": ("--cgroups", "-p", "PID", "1"),
    "runqlat": ("--cgroups", "1", "1"),
    "cpudist": ("--cgroups", "1", "1"),
    "lock": ("--by", "cgroup", "--userspace", "1"),
    "lock, csv": ("lock", "--by", "cgroup", "--userspace", "--format", "csv", "1"),
    "top": ("-F", "199", "--by", "cgroup", "1"),
}
"""Those that show cgroups."""


@pytest.mark.needs("cgroup2")
@pytest.mark.parametrize("name", by_day(CGROUPS, ("trace, json", "exec", "lock, csv", "top")))
def test_what_another_user_calls_a_cgroup_is_text(hostile: int, below: Path, name: str) -> None:
    (below / "cgroup.procs").write_text(str(hostile))
    try:
        words = [word.replace("PID", str(hostile)) for word in CGROUPS[name]]
        result = run(*([] if "," in name else [name]), *words)
    finally:
        cgroups.leave(below)
    assert result.returncode == 0, result.stderr
    shown = result.stdout + result.stderr
    controls = {char for line in shown.split("\n") for char in line.replace("\t", "")}
    assert not [char for char in controls if not char.isprintable()]
    assert "<i>evil" in shown


BY_DAY = {"profile, all", "profile, page", "profile, csv", "summary", "runqlat", "exec", "dump"}
BY_DAY |= {"open, table", "triage", "latency, slow"}
"""One of each layout."""


@pytest.mark.parametrize("name", by_day(COMMANDS, BY_DAY))
def test_what_another_user_wrote_is_text(hostile: int, name: str) -> None:
    words = [word.replace("PID", str(hostile)) for word in COMMANDS[name]]
    result = run(*([] if "," in name else [name]), *words)
    assert result.returncode in ((0, 10) if name == "triage" else (0,)), result.stderr
    shown = result.stdout + result.stderr
    assert "Traceback" not in shown
    if name != "triage":  # the process has no incident
        assert ("evil" if name.endswith("page") else "<b>") in shown
    controls = {char for line in shown.split("\n") for char in line.replace("\t", "")}
    assert not [char for char in controls if not char.isprintable()]
    assert not re.search(r"^(<b>evil|lost: nothing\?$|such)", shown, re.MULTILINE)
    if name.endswith("page"):
        assert "<script>alert" not in result.stdout
        assert "<b>evil" not in result.stdout
        assert result.stdout.count("<script") == result.stdout.count("</script>")
