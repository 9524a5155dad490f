"""A table in place of another fits the terminal that it is shown on."""

from __future__ import annotations

import os
import re
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

import pytest

from purebpf.cli.output import Output
from purebpf.cli.screen import in_place
from purebpf.results import Loss
from purebpf.summary.calls import Call
from purebpf.summary.options import View
from purebpf.summary.screen import Screen
from purebpf.summary.statistics import Statistics
from purebpf.summary.table import Cost, Group, Label, Row, Table
from purebpf.top.screen import screen
from tests.support.profiles import example

CLEAR = "\x1b[H\x1b[2J"


@contextmanager
def terminal(lines: int, columns: int) -> Iterator[list[str]]:
    """Makes standard output a terminal of that size; the lines that it has got, when it ends."""
    leader, follower = os.openpty()
    termios.tcsetwinsize(follower, (lines, columns))
    found: list[str] = []
    with open(follower, "w", encoding="utf-8") as stream, redirect_stdout(stream):
        yield found
    found += everything(leader).splitlines()
    os.close(leader)


def everything(leader: int) -> str:
    """What was written to the other side, which is closed."""
    raw = b""
    with suppress(OSError):  # EIO: that was all
        while True:
            raw += os.read(leader, 65536)
    return raw.decode()


def test_lines_are_cut_to_the_size_of_the_terminal() -> None:
    pieces = ["0123456789", "0123456789x\n", "\t\t2\n", "3\n4\n"]
    with terminal(4, 20):
        assert in_place(pieces) == [CLEAR, "01234567890123456789\n", f"{'':16}2\n", "3\n"]
        assert in_place(pieces, whole=True) == [CLEAR, *pieces]


def test_a_terminal_without_a_size_gets_all() -> None:
    with terminal(0, 0):
        assert in_place(["x" * 200, "\n", "y\n"]) == [CLEAR, "x" * 200 + "\n", "y\n"]


def test_the_heading_of_top_stays_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.live", None)
    with (
        terminal(4, 20) as shown,
        Output() as output,
        screen(output, by="function", lines=20) as tables,
    ):
        tables.show(example(), "now")
    first, *rest = shown
    assert first == f"{CLEAR}now: 100 samples"
    assert [len(line) for line in rest] == [20, 20]


def test_the_clock_of_summary_stays_in_sight() -> None:
    once = Statistics()
    once.add(1, 0, 1, min_ns=1, max_ns=1, squares=1)
    group = Group(Label(), (Row(Call("x86_64", 0, "read"), once),))
    table = Table("total", 0, 10**9, 0, (group,), (), Loss(), Cost())
    with terminal(10, 40) as shown, Output() as output:
        Screen(output, View(interval_s=1.0)).show(table)
    clock, *rest = shown
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\]", clock.removeprefix(CLEAR))
    assert len(rest) == 8
    assert max(map(len, rest)) == 40
