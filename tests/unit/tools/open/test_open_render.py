"""Opened files as text, as JSON and as a table, and the command line."""

from __future__ import annotations

import json
import os

import pytest

from purebpf.results import Loss
from purebpf.tools.open import summary as summary_module
from purebpf.tools.open.events import Opened
from purebpf.tools.open.flags import access, names
from purebpf.tools.open.options import parse
from purebpf.tools.open.render import JsonPrinter, TablePrinter, TextPrinter
from purebpf.tools.open.summary import Summary

FINE = Opened(
    time_ns=1_795_359_601_531_000_000,
    pid=5488,
    tid=5489,
    uid=0,
    comm="cat",
    cgroup="ssh.service",
    path="/usr/lib/os-release",
    given="lib/os-release",
    flags=os.O_RDONLY | os.O_CLOEXEC,
    dirfd=-100,
    fd=3,
    errno=0,
    duration_ns=3550,
)
MISSING = FINE._replace(path="/usr/n\n", given="n\n", fd=None, errno=2, duration_ns=3_990_000)
EMPTY = MISSING._replace(path="", given="")
UNREADABLE = MISSING._replace(path="", given=None, errno=14, flags=os.O_CREAT | os.O_RDWR)
EVENTS = (FINE, MISSING, EMPTY, UNREADABLE)


def test_the_text_is_this() -> None:
    printer = TextPrinter()
    assert "".join([*printer.begin(None), *printer.show(EVENTS)]) == (
        "RESULT      PID COMM              TAKES HOW PATH\n"
        "fd 3       5488 cat             3.55 us r   /usr/lib/os-release\n"
        "ENOENT     5488 cat             3.99 ms r   /usr/n?\n"
        "ENOENT     5488 cat             3.99 ms r   ''\n"
        "EFAULT     5488 cat             3.99 ms rw+ [unreadable]\n"
    )


def test_json_has_all_of_it() -> None:
    printer = JsonPrinter()
    fine, missing, *_ = map(json.loads, printer.show(EVENTS))
    assert fine == {
        "event": "open",
        "time": "2026-11-22T15:00:01.531000000Z",
        "pid": 5488,
        "tid": 5489,
        "uid": 0,
        "comm": "cat",
        "cgroup": "ssh.service",
        "path": "/usr/lib/os-release",
        "given": "lib/os-release",
        "flags": ["O_RDONLY", "O_CLOEXEC"],
        "dirfd": -100,
        "fd": 3,
        "errno": None,
        "duration_ns": 3550,
    }
    assert (missing["path"], missing["errno"], missing["fd"]) == ("/usr/n\n", "ENOENT", None)


def test_the_table_has_failures_first() -> None:
    denied = MISSING._replace(errno=13)
    printer = TablePrinter(Summary("path"), top=2)
    printer.begin(None)
    printer.show([FINE] * 5 + [MISSING] * 2 + [denied, EMPTY])
    assert "".join(printer.end(Loss())) == (
        " FAILED   CALLS  PROCS   TOTAL     MAX ERRNO         PATH\n"
        "      3       3      1 12.0 ms 3.99 ms ENOENT +1     /usr/n?\n"
        "      1       1      1 3.99 ms 3.99 ms ENOENT        ''\n"
        "... and 1 more\n"
    )


def test_the_table_has_processes() -> None:
    printer = TablePrinter(Summary("process"), format="json")
    printer.show([*EVENTS, FINE._replace(pid=7)])
    first, second, loss = map(json.loads, printer.end(Loss()))
    assert first == {
        "event": "process",
        "pid": 5488,
        "comm": "cat",
        "calls": 4,
        "failed": 3,
        "errno": {"ENOENT": 2, "EFAULT": 1},
        "total_ns": 11_973_550,
        "max_ns": 3_990_000,
        "paths": 3,
    }
    assert second["pid"] == 7
    assert loss["event"] == "loss"


def test_what_finds_no_room_is_counted() -> None:
    summary = Summary("path", room=1)
    summary.add([FINE, MISSING, FINE])
    assert [row.calls for _, row in summary.rows()] == [2]
    cause, _ = TablePrinter(summary).losses()
    assert (cause.lost, cause.is_note) == (1, False)


def test_flags_have_their_names() -> None:
    assert names(os.O_WRONLY | os.O_CREAT | os.O_TMPFILE) == ["O_WRONLY", "O_CREAT", "O_TMPFILE"]
    assert names(os.O_DIRECTORY | os.O_SYNC) == ["O_RDONLY", "O_SYNC", "O_DIRECTORY"]
    assert names(3 | 1 << 30) == ["0x3", "0x40000000"]
    assert [access(flags) for flags in (0, 1, 2, 3, 64)] == ["r", "w", "rw", "?", "r+"]


def test_the_table_has_options_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, shape = parse(["--summary", "--by", "process", "-n", "3"])
    assert (shape.summary, shape.by, shape.top) == (True, "process", 3)
    with pytest.raises(SystemExit, match="2"):
        parse(["--by", "process"])
    assert "options of --summary" in capsys.readouterr().err


def test_an_errno_has_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["-e", "enoent"])[0].errno == 2
    with pytest.raises(SystemExit, match="2"):
        parse(["-e", "ENOTHING"])
    assert "unknown errno 'ENOTHING'" in capsys.readouterr().err


@pytest.mark.parametrize("times", [False, True])
def test_every_column_together_fits_into_a_terminal(times: bool) -> None:
    printer = TextPrinter(times=times, cgroups=True)
    long = EVENTS[0]._replace(cgroup="kubepods-burstable-pod1234.slice", comm="fifteen-letters")
    text = "".join([*printer.begin(80), *printer.show([long])])
    assert all(len(line) <= 80 for line in text.splitlines())


def test_memory_of_a_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths that do not exist cost a user nothing, and each may be another one."""
    monkeypatch.setattr(summary_module, "_TEXT", 10_000)
    monkeypatch.setattr(summary_module, "_APART", 1000)
    paths = [MISSING._replace(path=f"/{number:0999}") for number in range(2003)]
    by_path, by_process = Summary("path"), Summary("process")
    by_path.add(paths)
    assert len(by_path.rows()) == 10
    assert by_path.dropped == 2003 - 10
    by_process.add(path._replace(pid=number % 3) for number, path in enumerate(paths))
    assert sum(len(row.others) for _, row in by_process.rows()) == 1000
    assert by_process.lumped == 2003 - 1000
    assert by_process.dropped == 0
    causes = {cause.name: cause for cause in TablePrinter(by_process).losses()}
    assert (causes["lumped"].lost, causes["lumped"].is_note) == (1003, True)
