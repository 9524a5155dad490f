"""Requests and their sums as text and JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from purebpf.cli.event_lines import timestamp
from purebpf.results import Cause, Loss
from purebpf.results.shape.histogram import BUCKETS
from purebpf.tools.io.event import IoRow, Request, error_name, file_name, op_name
from purebpf.tools.io.render import IoText, Json

SLOW = Request(
    1_700_000_000_123_456_789, 1234, 1235, 0, "postgres", 1, "vda", "write", 2048, 16384,
    13_100_000, 12_300_000, "", 77, "base/16384",
)  # fmt: skip
COUNTS = tuple(9 if bucket == 30 else 1 if bucket == 50 else 0 for bucket in range(BUCKETS))
ROW = IoRow("vda", 0, "", "", "write", 10, 1, 163_840, 3_000_000, 70_000, COUNTS)
LOSS = Loss(causes=(Cause("rows_full", 3, "3 requests"),))
GOLDEN = """\
TIME             PID COMM      DEVICE  OP      SIZE   QUEUE    TOOK FILE
22:13:20.123    1234 postgres  vda     write    16k 12.3 ms 13.1 ms base/16384
22:13:20.123    1234 postgres  vda     read     16k 12.3 ms 13.1 ms - MEDIUM

DEVICE               OP       COUNT ERRORS BYTES   QUEUE     p50     p90     p99
vda                  write       10      1  164k 7.00 us  416 us  441 us 13.3 ms
"""


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def text(by: str = "device", *rows: IoRow, histogram: bool = False) -> list[str]:
    printer = IoText(lambda: rows, by, slow=True, histogram=histogram)
    events = [SLOW, SLOW._replace(op="read", file="", error="MEDIUM")]
    pieces = (*printer.begin(None), *printer.show(events), *printer.end(LOSS))
    return "".join(pieces).splitlines()


def test_lines_are_the_golden_ones_of_80_columns() -> None:
    assert text("device", ROW) == GOLDEN.splitlines()
    assert all(len(line) <= 80 for line in text("device", ROW, histogram=True))


def test_rows_of_processes_and_files() -> None:
    assert text("process", ROW._replace(pid=7, comm="a\x1b[2J"))[-1].startswith("      7 a?[2J  ")
    assert text("file", ROW._replace(file="x" * 30 + "/name"))[-1].startswith("...xxx")
    assert text("file", ROW)[-1].startswith("[direct] ")


def test_nothing_measured_is_said() -> None:
    assert text("device")[-1] == "no requests"


def test_json_has_requests_the_sums_and_the_loss() -> None:
    printer = Json(lambda: [ROW], "device")
    first, summary, last = map(json.loads, (*printer.show([SLOW]), *printer.end(LOSS)))
    assert (first.pop("event"), first.pop("time")) == ("request", timestamp(SLOW.time_ns))
    assert Request(SLOW.time_ns, **first) == SLOW
    (row,) = summary["rows"]
    assert row["buckets"] == [[384_000, 448_000, 9], [12_288_000, 14_336_000, 1]]
    assert row["p50_ns"] == 416_000
    assert last == {"event": "loss", "schema": "purebpf.events/1", "loss": {"rows_full": 3}}


def test_words_for_numbers_of_the_kernel() -> None:
    assert [op_name(number) for number in (0, 1, 2, 3, 99)] == [
        *("read", "write", "flush", "discard", "op 99")
    ]
    assert [error_name(status) for status in (0, 10, -5, 99)] == ["", "IOERR", "EIO", "status 99"]
    assert file_name("name", "/", 1, 2) == "/name"
    assert file_name("name", "folder", 1, 2) == "folder/name"
    assert [file_name("", "", *numbers) for numbers in ((0, 0), (5, 9), (5, 0))] == [
        *("", "inode 5", "[metadata]")
    ]
