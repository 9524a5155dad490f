"""Files that are opened in a known way: every call is shown, with its path and its result."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from purebpf.tools.open import OpenOptions, Opens
from purebpf.tools.open.render import JsonPrinter
from tests.commands.following import follow
from tests.support.environment import run

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "tracefs")

NOTES = ("paths_unreadable", "directories_unknown")
PYTHON = (sys.executable, "-S", "-E", "-c")


def shown(*command: str, below: str = "", **asked: Any) -> list[dict[str, Any]]:
    """The calls of a command for paths below a directory; nothing was lost."""
    make = partial(Opens, OpenOptions(command=command, **asked))
    calls = follow(make, JsonPrinter().show, command, NOTES)
    return [call for call in calls if call["path"].startswith(below)]


def test_calls_are_counted_exactly(tmp_path: Path) -> None:
    """Two hundred and eleven that succeed, 307 that fail, from eight threads."""
    code = f"""
import os, threading
os.chdir({str(tmp_path)!r})
open("here", "w").close()
def work(files, missing):
    for _ in range(files):
        os.close(os.open("here", os.O_RDONLY))
    for number in range(missing):
        try:
            os.open(f"missing-{{number}}", os.O_RDWR)
        except OSError:
            pass
threads = [threading.Thread(target=work, args=(26, 38)) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
work(211 - 8 * 26 - 1, 307 - 8 * 38)
"""
    calls = shown(*PYTHON, code, below=str(tmp_path))
    results = Counter((call["given"].partition("-")[0], call["errno"]) for call in calls)
    assert results == {("here", None): 211, ("missing", "ENOENT"): 307}
    assert all(call["path"] == str(tmp_path / call["given"]) for call in calls)
    assert len({call["tid"] for call in calls}) == 9
    assert all(call["fd"] is None for call in calls if call["errno"])
    assert all(call["fd"] >= 3 for call in calls if not call["errno"])
    assert all(0 < call["duration_ns"] < 60e9 for call in calls)
    assert {call["given"] for call in calls if not call["errno"]} == {"here"}


def test_relative_paths_are_whole(tmp_path: Path) -> None:
    """By the current directory, by a descriptor, across a mount, below the root."""
    deep = tmp_path.joinpath(*["directory-" + "d" * 200] * 10)
    deep.mkdir(parents=True)
    code = f"""
import os
os.chdir({str(deep)!r})
os.open("./one", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC)
above = os.open({str(tmp_path)!r}, os.O_PATH)
os.open("two", os.O_CREAT | os.O_RDWR, dir_fd=above)
os.open("../three", os.O_CREAT | os.O_RDWR)
os.chdir("/proc/self/net")
os.open("tcp", os.O_RDONLY)
os.chdir("/")
os.open("etc/passwd", os.O_RDONLY)
os.open(".", os.O_RDONLY)
"""
    calls = shown(*PYTHON, code)
    by_given = {call["given"]: call for call in calls if call["given"] != call["path"]}
    assert {given: call["path"] for given, call in by_given.items() if given != "tcp"} == {
        "./one": str(deep / "one"),
        "two": str(tmp_path / "two"),
        "../three": f"{deep}/../three",
        "etc/passwd": "/etc/passwd",
        ".": "/",
    }
    assert by_given["tcp"]["path"] == f"/proc/{by_given['tcp']['pid']}/net/tcp"
    assert by_given["two"]["dirfd"] >= 3
    assert by_given["./one"]["flags"] == ["O_WRONLY", "O_CREAT", "O_CLOEXEC"]


def test_paths_are_those_that_the_process_sees(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    code = f"""
import os
os.chroot({str(tmp_path)!r})
os.chdir("/inside")
try:
    os.open("nothing", os.O_RDONLY)
except OSError:
    pass
"""
    paths = {call["given"]: call["path"] for call in shown(*PYTHON, code)}
    assert paths["nothing"] == "/inside/nothing"


ERRORS = """
import ctypes, os, sys
os.chdir(sys.argv[1])
open("file", "w").close()
os.symlink("loop", "loop")
os.mkdir("folder")
libc = ctypes.CDLL(None)
for path, flags in (
    (b"file/below", os.O_RDONLY),
    (b"folder", os.O_WRONLY),
    (b"loop", os.O_RDONLY),
    (b"n" * 256, os.O_RDONLY),
    (b"file", os.O_CREAT | os.O_EXCL),
    (b"", os.O_RDONLY),
):
    libc.open(path, flags)
libc.open(ctypes.c_void_p(1), os.O_RDONLY)
libc.openat(99, b"file", os.O_RDONLY)
"""


def test_errors_have_their_names(tmp_path: Path) -> None:
    calls = shown(*PYTHON, ERRORS, str(tmp_path), failed=True)
    assert all(call["errno"] for call in calls)
    errors = {call["errno"]: call["path"] for call in calls[-8:]}
    assert errors == {
        "ENOTDIR": f"{tmp_path}/file/below",
        "EISDIR": f"{tmp_path}/folder",
        "ELOOP": f"{tmp_path}/loop",
        "ENAMETOOLONG": f"{tmp_path}/{'n' * 256}",
        "EEXIST": f"{tmp_path}/file",
        "ENOENT": "",
        "EFAULT": "",
        "EBADF": ".../file",
    }


def test_an_empty_path_was_read() -> None:
    """On Linux 6.1 and 6.12 the helper gives 0 bytes for it, which is not an error."""
    code = """
import ctypes, os
libc = ctypes.CDLL(None)
for _ in range(31):
    libc.open(b"", os.O_RDONLY)
libc.open(ctypes.c_void_p(1), os.O_RDONLY)
"""
    calls = shown(*PYTHON, code, failed=True)
    given = Counter((call["errno"], call["given"]) for call in calls[-32:])
    assert given == {("ENOENT", ""): 31, ("EFAULT", None): 1}


def test_one_errno_can_be_asked_for(tmp_path: Path) -> None:
    calls = shown(*PYTHON, ERRORS, str(tmp_path), errno=errno.ELOOP)
    assert [call["path"] for call in calls] == [f"{tmp_path}/loop"]


CALLS = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.creat(sys.argv[1].encode() + b"/by-creat", 0o600)
libc.syscall(2, sys.argv[1].encode() + b"/by-open", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(os.O_RDONLY | os.O_NOFOLLOW, 0, 0)
libc.syscall(437, -100, sys.argv[1].encode() + b"/by-openat2", how, 24)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64's calls")
def test_the_other_calls_are_seen(tmp_path: Path) -> None:
    calls = shown(*PYTHON, CALLS, str(tmp_path), below=str(tmp_path))
    assert [(call["path"].rpartition("/")[2], call["flags"]) for call in calls] == [
        ("by-creat", ["O_WRONLY", "O_CREAT", "O_TRUNC"]),
        ("by-open", ["O_RDONLY"]),
        ("by-openat2", ["O_RDONLY", "O_NOFOLLOW"]),
    ]


def test_long_and_odd_names_are_whole(tmp_path: Path) -> None:
    long = "/".join(["l" * 250] * 15)
    odd = "new\nline\x1b[31m"
    code = """
import os, sys
for name in sys.argv[1:]:
    try:
        os.open(name, os.O_RDONLY)
    except OSError:
        pass
"""
    paths = [f"{tmp_path}/{long}", f"{tmp_path}/{odd}"]
    calls = shown(*PYTHON, code, *paths, below=str(tmp_path))
    assert [call["path"] for call in calls] == paths
    text = run("open", "--", *PYTHON, code, paths[1]).stdout
    assert "\x1b" not in text
    assert "new?line?[31m" in text


def test_the_table_has_failures_first(tmp_path: Path) -> None:
    code = f"""
import os
os.chdir({str(tmp_path)!r})
open("fine", "w").close()
for name, times in (("missing", 13), ("fine", 17), ("fine/x", 11)):
    for _ in range(times):
        try:
            os.close(os.open(name, os.O_RDONLY))
        except OSError:
            pass
"""
    result = run("open", "--format", "json", "--summary", "--", *PYTHON, code)
    *rows, loss = map(json.loads, result.stdout.splitlines())
    assert loss["event"] == "loss"
    mine = [row for row in rows if row["path"].startswith(str(tmp_path))]
    assert [(row["path"].rpartition("/")[2], row["failed"], row["calls"]) for row in mine] == [
        ("missing", 13, 13),
        ("x", 11, 11),
        ("fine", 0, 18),
    ]
    assert [row["errno"] for row in mine] == [{"ENOENT": 13}, {"ENOTDIR": 11}, {}]


@pytest.mark.needs("strace")
def test_strace_sees_the_same(tmp_path: Path) -> None:
    command = ["sh", "-c", "cd /etc; for i in 1 2 3; do cat passwd nothing; done >&2; true"]
    log = tmp_path / "log"
    names = "openat,open,creat,openat2"
    subprocess.run(
        ["strace", "-f", "-qq", "-s", "9999", "-e", f"trace={names}", "-o", log, *command],
        check=True,
        capture_output=True,
    )
    theirs = Counter(
        (line.split('"')[1], line.rpartition(" = ")[2].partition(" ")[2].partition(" ")[0])
        for line in log.read_text().splitlines()
        if "open" in line
    )
    ours = Counter((call["given"], call["errno"] or "") for call in shown(*command))
    assert ours == theirs
