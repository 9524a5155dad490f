"""The table behind a trace: its counts are those of the lines above."""

from __future__ import annotations

import json

from purebpf.results import Loss
from purebpf.tools.trace.events import Call, Lost, Task
from purebpf.tools.trace.render import JsonPrinter, StracePrinter
from purebpf.tools.trace.summary import SummingPrinter

TASK = Task(7, 7, 0, "ls", "")


def call(name: str, took_ns: int | None, errno: int = 0, ending: str = "returned") -> Call:
    result = -errno if errno else 0
    return Call(0, TASK, name, "x86_64", (), (), (), result, "0", errno, took_ns, ending)


EVENTS = [
    call("read", 1000),
    call("read", 3000, errno=11),
    call("mount", None, errno=1),
    call("exit_group", 5, ending="unfinished"),
    Lost(5, {"read": 4, "sched:sched_switch": 1}),
]


def test_lines_come_first_then_the_table() -> None:
    printer = SummingPrinter(StracePrinter())
    shown = [*printer.begin(None), *printer.show(EVENTS), *printer.end(Loss())]
    lines = "".join(shown).splitlines()
    assert len([line for line in lines if line.startswith("7 ")]) == 4
    assert lines[-5:] == [
        " Summary of 7 calls:",
        "",
        "  syscall                   calls errors   total     min     avg     max",
        "  read                          6      1 4.00 us 1.00 us 2.00 us 3.00 us",
        "  mount                         1      1       -       -       -       -",
    ]


def test_json_has_a_row_a_call() -> None:
    printer = SummingPrinter(JsonPrinter(), is_json=True)
    list(printer.show(EVENTS))
    documents = [json.loads(line) for line in printer.end(Loss())]
    rows = [each for each in documents if each["event"] == "summary"]
    assert rows[0] == {
        "event": "summary", "syscall": "read", "calls": 6, "errors": 1, "lost": 4, "timed": 2,
        "total_ns": 4000, "min_ns": 1000, "max_ns": 3000,
    }  # fmt: skip
    assert rows[1]["min_ns"] is None
