"""Waits for locks and their sums as text and JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from purebpf.cli.event_lines import timestamp
from purebpf.results import Cause, Loss
from purebpf.results.model.intervals import Interval
from purebpf.results.shape.histogram import BUCKETS
from purebpf.tools.lock.event import LockRow, Wait
from purebpf.tools.lock.longest import with_longest
from purebpf.tools.lock.render import Csv, Folded, Json, LockText

WAIT = Wait(
    1_700_000_000_123_456_789, 1234, 1235, 0, "postgres", "rwsem:W", 0xFFFF888100000000,
    "mmap_lock", 13_100_000, "worker", 1234, 1236, "vm_mmap_pgoff", (),
)  # fmt: skip
COUNTS = tuple(9 if bucket == 50 else 1 if bucket == 90 else 0 for bucket in range(BUCKETS))
ROW = LockRow("vm_mmap_pgoff", 0, 0, "rwsem:W", 10, 2, 120_000_000, 13_500_000, COUNTS, ())
LOSS = Loss(causes=(Cause("rows_full", 3, "3 waits"),))
GOLDEN = """\
TIME             PID COMM            TYPE           TOOK LOCK
22:13:20.123    1234 postgres        rwsem:W     13.1 ms mmap_lock in vm_mmap_pgoff, held by worker (1236)
22:13:20.123    1234 postgres        spinlock    13.1 ms run queue of CPU 1

   WAITS  OPEN   TOTAL     AVG     MAX     p50     p99 TYPE        CALLER
      10     2  120 ms 10.0 ms 13.5 ms 13.3 us 13.0 ms rwsem:W     vm_mmap_pgoff
"""  # noqa: E501


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def text(by: str, *rows: LockRow, width: int | None = None, **details: bool | int) -> list[str]:
    printer = LockText(lambda: rows, by, slow=True, **details)
    events = [
        WAIT,
        WAIT._replace(type="spinlock", name="run queue of CPU 1", owner="", caller=""),
    ]
    pieces = (*printer.begin(width), *printer.show(events), *printer.end(LOSS))
    return "".join(pieces).splitlines()


def test_lines_are_the_golden_ones() -> None:
    assert text("caller", ROW) == GOLDEN.splitlines()


@pytest.mark.parametrize(
    ("cpu_s", "line"),
    [
        (4.0, "24 waits, 240 ms in all: 6 % of CPU time"),
        (4000.0, "24 waits, 240 ms in all: 0.006 % of CPU time; nothing here"),
    ],
)
def test_a_sum_with_a_verdict_stands_before_the_rows(cpu_s: float, line: str) -> None:
    printer = LockText(lambda: (ROW, ROW), "caller", cpu_s=lambda: cpu_s)
    first, header, *_ = "".join(printer.end(LOSS)).splitlines()
    assert first == line
    assert header.startswith("   WAITS")


def test_lines_are_cut_to_the_terminal() -> None:
    lines = text("caller", ROW, width=80, histogram=True)
    assert max(map(len, lines)) == 80
    assert lines[1].endswith("...")


def test_stacks_are_below_their_lines() -> None:
    row = ROW._replace(stack=("rwsem_down_write_slowpath", "vm_mmap_pgoff"))
    lines = text("caller", row)
    assert lines[-2:] == ["          rwsem_down_write_slowpath", "          vm_mmap_pgoff"]


def test_rows_of_tasks_have_no_type() -> None:
    row = ROW._replace(name="a\x1b[2J", pid=7, tid=8, type="")
    assert text("process", row)[-1].endswith(" 13.0 ms a?[2J (7)")
    assert text("thread", row)[-1].endswith(" a?[2J (7/8)")
    assert text("owner", row)[-1].endswith(" a?[2J (8)")
    assert "[unknown: " in text("owner", row._replace(tid=0))[-1]
    assert text("cgroup", row._replace(name=""))[-1].endswith(" /")


def test_only_the_heaviest_rows_are_shown() -> None:
    assert text("caller", ROW, ROW, ROW, most=1)[-1] == "... and 2 more"
    assert text("caller")[-1] == "no waits"


def test_waits_that_are_all_open_have_no_percentiles() -> None:
    row = ROW._replace(waits=0, open=1, max_ns=120_000_000, buckets=())
    cells = text("caller", row, histogram=True)[-1].split()[2:10]
    assert cells == [*("120", "ms") * 3, "-", "-"]


def test_no_percentile_is_above_the_longest_wait() -> None:
    (document, _) = map(json.loads, Json(lambda: (ROW,), "caller").end(LOSS))
    (row,) = document["rows"]
    assert row["buckets"][-1][0] < row["p99_ns"] <= row["max_ns"] < row["buckets"][-1][1]
    cells = "".join(Csv(lambda: (ROW,)).end(LOSS)).strip().split(",")
    assert int(cells[-1]) <= ROW.max_ns


def test_owners_are_below_those_who_wait() -> None:
    row = ROW._replace(stack=("down_write",), owner_stack=("vfs_rename",))
    assert text("owner", row)[-3:] == [
        *("          down_write", "        held in:", "          vfs_rename"),
    ]


def test_intervals_are_tables_with_the_time() -> None:
    interval = Interval(WAIT.time_ns, 1.0, (ROW,))
    printer = LockText(lambda: (ROW, ROW), "caller", every=True)
    lines = "".join((*printer.begin(None), *printer.show([interval]), *printer.end(LOSS)))
    assert lines == "\n22:13:20.123\n" + "".join(f"{line}\n" for line in GOLDEN.splitlines()[-2:])
    (document,) = map(json.loads, Json(lambda: (), "caller").show([interval]))
    assert (document["event"], document["elapsed_s"]) == ("interval", 1.0)
    assert document["rows"][0]["p99_ns"] == 13_041_456


def test_csv_has_a_line_for_each_row() -> None:
    row = ROW._replace(name='run "queue", of CPU 1', known_from="CPU")
    printer = Csv(lambda: (row,))
    lines = "".join((*printer.begin(None), *printer.show([WAIT]), *printer.end(LOSS)))
    assert lines == (
        "name,type,pid,tid,waits,open,total_ns,max_ns,known_from,p50_ns,p99_ns\n"
        '"run ""queue"", of CPU 1",rwsem:W,0,0,10,2,120000000,13500000,CPU,13312,13041456\n'
    )
    printer = Csv(lambda: (row,), every=True)
    interval = Interval(WAIT.time_ns, 1.0, (ROW,))
    header, line = "".join(
        (*printer.begin(None), *printer.show([interval]), *printer.end(LOSS))
    ).splitlines()
    assert header.startswith("time,name,")
    assert line.startswith("2023-11-14T22:13:20.123456789Z,vm_mmap_pgoff,")


def test_folded_stacks_end_with_the_type() -> None:
    row = ROW._replace(stack=("down_write", "a;b"))
    printer = Folded(lambda: (row, row._replace(type="mutex"), row, ROW))
    assert "".join((*printer.begin(None), *printer.show([WAIT]), *printer.end(LOSS))) == (
        "a:b;down_write;[rwsem:W] 240000\n"
        "a:b;down_write;[mutex] 120000\n"
        "vm_mmap_pgoff;[rwsem:W] 120000\n"
    )


def test_json_has_every_field() -> None:
    printer = Json(lambda: (ROW,), "caller")
    lines = "".join((*printer.begin(None), *printer.show([WAIT]), *printer.end(LOSS))).splitlines()
    wait, summary, loss = map(json.loads, lines)
    assert wait["event"] == "wait"
    assert wait["time"] == timestamp(WAIT.time_ns)
    assert wait["owner_tid"] == 1236
    assert wait["lock"] == "0xffff888100000000"
    (row,) = summary["rows"]
    assert row["waits"] == 10
    assert sum(count for *_, count in row["buckets"]) == 10
    assert loss == {"event": "loss", "schema": "purebpf.events/1", "loss": {"rows_full": 3}}


def test_an_interval_has_its_own_longest_wait() -> None:
    later = ROW._replace(buckets=tuple(int(bucket == 50) for bucket in range(BUCKETS)))
    (same,) = with_longest([later], [ROW], lambda row: row.name)
    assert 12_288 <= same.max_ns <= 14_336  # that of bucket 50: the one of 13.5 ms was before
    (longer,) = with_longest([later._replace(max_ns=14_000_000)], [ROW], lambda row: row.name)
    assert longer.max_ns == 14_000_000
    (new,) = with_longest([ROW], [], lambda row: row.name)
    assert new.max_ns == ROW.max_ns
    (waiting,) = with_longest([ROW._replace(buckets=())], [ROW], lambda row: row.name)
    assert waiting.max_ns == 0
