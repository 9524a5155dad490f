"""Programs counted: starts, failures, CPU time."""

from __future__ import annotations

import json

import pytest

from purebpf.results import Loss
from purebpf.tools.exec import summary
from purebpf.tools.exec.events import Ended, Event, Executed, Refused, Task, Used
from purebpf.tools.exec.options import parse
from purebpf.tools.exec.summary import ProgramTable


def task(pid: int, comm: str = "ls") -> Task:
    return Task(0, pid, pid, 1, 0, comm, "")


EVENTS: list[Event] = [
    Executed(task(7), "ls", "/usr/bin/ls", ("ls",), 0),
    Used(task(7), 2_000_000),
    Ended(task(7), 2, None, False, 5_000_000),
    Used(task(7), 1_000_000),  # its other thread, which was switched later
    Executed(task(8), "ls", "/usr/bin/ls", ("ls",), 0),
    Ended(task(8), None, 15, False, 15_000_000),
    Refused(task(9, "sh"), "/bin/nope", 2),
    Ended(task(10, "sh"), 0, None, False, 1_000_000),
]


def test_the_table_is_this() -> None:
    table = ProgramTable()
    shown = [*table.begin(None), *table.show(EVENTS), *table.end(Loss())]
    assert "".join(shown).splitlines() == [
        " STARTS    ENDS FAILED     CPU   LIVED WHY            PROGRAM",
        "      2       2      2 3.00 ms 10.0 ms status 2 +1    /usr/bin/ls",
        "      0       0      1    0 ns       - ENOENT         /bin/nope",
        "      0       1      0    0 ns 1.00 ms -              (sh)",
    ]


def test_json_has_a_row_a_program() -> None:
    table = ProgramTable(format="json", top=1)
    list(table.show(EVENTS))
    row, loss = map(json.loads, table.end(Loss()))
    assert row == {
        "event": "program", "program": "/usr/bin/ls", "starts": 2, "ends": 2, "failed": 2,
        "failures": {"status 2": 1, "SIGTERM": 1}, "cpu_ns": 3_000_000, "lifetime_ns": 20_000_000,
    }  # fmt: skip
    assert loss["event"] == "loss"


def test_a_full_table_counts_what_it_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary.ProgramTable, "room", 1)
    table = ProgramTable()
    list(table.show(EVENTS))
    (cause,) = table.losses()
    assert (cause.name, cause.lost) == ("rows_full", 2)


@pytest.mark.parametrize("words", [["--top", "3"], ["--summary", "--failed"]])
def test_options_that_do_not_go_together(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        parse(words)
