from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from purebpf.results import Loss
from purebpf.results.shape.histogram import BUCKETS
from purebpf.tools.latency.calls import Branch, Call, Interval, LatencyRow
from purebpf.tools.latency.page import Columns, Page
from purebpf.tools.latency.render import Csv, Folded, Json, LatencyText, Result, Shape
from purebpf.tools.latency.request import Grouping, parse_grouping
from purebpf.tools.latency.scale import Scale
from purebpf.tools.latency.sums import Sum, branches, differences, make_rows, merge


class RowKey(NamedTuple):
    function: int
    group: tuple[int, int]


class KernelRow(NamedTuple):
    calls: int
    total_ns: int
    least_ns: int
    most_ns: int
    comm: str
    buckets: tuple[int, ...]


class Node(NamedTuple):
    parent: int
    function: int
    calls: int
    total_ns: int
    self_ns: int


def buckets(**counts: int) -> tuple[int, ...]:
    """By `b9=4`: four in bucket 9."""
    return tuple(counts.get(f"b{at}", 0) for at in range(BUCKETS))


def row(function: str = "read", **fields: object) -> LatencyRow:
    plain = LatencyRow(function, "", 0, 0, 7, 70_000, 8000, 13_000, buckets(b8=5, b10=2))
    return plain._replace(**fields)


CALL = Call(1_795_000_000_123_000_000, 185, 186, 0, "db", "sync", 5_210_000, -1, 0, ("a",), ("b",))


def text(
    shape: Shape, *rows: LatencyRow, tree: tuple[Branch, ...] = (), calls: tuple = ()
) -> list[str]:
    printer = LatencyText(lambda: Result(rows, tree, 2.0), shape)
    pieces = [*printer.begin(80), *printer.show(calls), *printer.end(Loss())]
    return "".join(pieces).splitlines()


def test_one_row_has_a_histogram():
    assert text(Shape(), row()) == [
        "   CALLS   TOTAL     AVG     MIN     p50     p99     MAX FUNCTION",
        "       7 70.0 us 10.0 us 8.00 us 9.00 us 13.0 us 13.0 us read",
        "     usecs               : count     distribution",
        "         8 -> 15         : 7        |****************************************|",
    ]


def test_fine_and_linear_buckets_are_drawn_one_by_one():
    fine = text(Shape(scale=Scale(fine=True)), row())
    assert [line.split(":")[0].split() for line in fine[3:]] == [
        ["8", "->", "9"], ["10", "->", "11"], ["12", "->", "13"]
    ]  # fmt: skip
    linear = text(Shape(scale=Scale(linear=10)), row(buckets=buckets(b0=5, b1=2)))
    assert [line.split(":")[0].split() for line in linear[3:]] == [
        ["0", "->", "9"], ["10", "->", "19"]
    ]  # fmt: skip


def test_several_rows_are_a_table_with_their_groups():
    lines = text(Shape("process", most=2), row(group="db", pid=185), row("write"), row("sync"))
    assert lines[0].endswith("FUNCTION [process]")
    assert lines[1].endswith("read [db (185)]")
    assert lines[3] == "... and 1 more (-E)"
    assert len(lines) == 4


def test_counts_have_a_rate():
    assert text(Shape(only_count=True), row()) == [
        "     CALLS    CALLS/s FUNCTION",
        "         7        3.5 read",
    ]


def test_a_tree_is_indented():
    tree = (Branch(("a",), 1, 9000, 4000), Branch(("a", "b"), 5, 5000, 5000))
    lines = text(Shape(tree=True), row(), row("write"), tree=tree)
    assert lines[-2:] == [
        "       1 9.00 us 4.00 us a",
        "       5 5.00 us 5.00 us   b",
    ]


def test_slow_calls_have_a_line_and_their_callers():
    lines = text(Shape(slow=True), calls=(CALL,))
    assert lines[1].split()[1:] == ["185", "db", "5.21", "ms", "sync"]
    assert lines[2:4] == [" " * 10 + "a", " " * 10 + "b"]
    assert lines[-1] == "no calls"


def test_json_has_buckets_in_nanoseconds():
    printer = Json(lambda: Result([row()], (), 2.0), Shape())
    lines = [*printer.show([CALL, Interval(10**18, 1.0, (row(),))]), *printer.end(Loss())]
    call, interval, summary, loss = map(json.loads, lines)
    assert (call["event"], call["took_ns"], call["result"]) == ("call", 5_210_000, -1)
    assert interval["rows"] == summary["rows"]
    assert summary["rows"][0]["buckets"] == [[8000, 10_000, 5], [12_000, 14_000, 2]]
    assert loss == {"event": "loss", "schema": "purebpf.events/1", "loss": {}}


def test_csv_has_a_line_for_each_row():
    printer = Csv(lambda: Result([row("f(int, char)")], (), 2.0), Shape())
    lines = "".join([*printer.begin(None), *printer.end(Loss())]).splitlines()
    assert lines == [
        "function,group,pid,tid,calls,total_ns,least_ns,p50_ns,p90_ns,p99_ns,most_ns",
        '"f(int, char)",,0,0,7,70000,8000,9000,13000,13000,13000',
    ]


def test_rows_of_cpus_are_one():
    made = merge(
        [
            (RowKey(0, (5, 0)), KernelRow(2, 30, 10, 20, "a", (2, 0))),
            (RowKey(0, (5, 0)), KernelRow(1, 7, 7, 7, "a", (1, 0))),
        ]
    )
    assert made == {(0, 5, 0): Sum(3, 37, 7, 20, "a", (3, 0))}


def test_an_interval_is_what_came_since():
    before = {(0, 0, 0): Sum(2, 20_000, 5000, 15_000, "a", buckets(b5=1, b11=1))}
    now = {(0, 0, 0): Sum(5, 50_000, 5000, 15_000, "a", buckets(b5=1, b8=3, b11=1))}
    (changed,) = differences(now, before, Scale()).values()
    assert changed == Sum(3, 30_000, 8000, 9999, "a", buckets(b8=3))
    assert differences(now, now, Scale()) == {}


@pytest.mark.parametrize(
    ("by", "group", "shown"),
    [
        ("ret", (2**64 - 5, 0), ("-5", 0, 0)),
        ("ret:int", (2**32 - 5, 0), ("-5", 0, 0)),
        ("arg1:uint", (2**32 - 5, 0), (str(2**32 - 5), 0, 0)),
        ("thread", (185 << 32 | 190, 0), ("a", 185, 190)),
        ("comm", (int.from_bytes(b"hi\0\0", "little"), 0), ("hi", 0, 0)),
        ("cgroup", (7, 0), ("cgroup 7", 0, 0)),
    ],
)
def test_groups_have_names(by, group, shown):
    sums = {(0, *group): Sum(1, 1, 1, 1, "a", ())}
    (made,) = make_rows(sums, ["f"], parse_grouping(by), lambda number: f"cgroup {number}")
    assert (made.group, made.pid, made.tid) == shown


def test_branches_come_behind_their_callers():
    nodes = {
        1: Node(0, 0, 1, 90, 40),
        2: Node(1, 1, 5, 50, 50),
        3: Node(0, 1, 2, 95, 95),
        4: Node(77, 1, 1, 3, 3),
    }
    made = branches(nodes, ["a", "b"])
    assert [branch.path for branch in made] == [("[in flight]", "b"), ("b",), ("a",), ("a", "b")]
    assert Grouping() == parse_grouping("")


def test_a_page_draws_each_bucket_of_each_column():
    page = Page(lambda: Result([row("f<int>")], (), 2.0), Shape())
    for second in range(3):
        page.show([Interval((second + 1) * 10**9, 1.0, (row("f<int>"),))])
    text = "".join(page.end(Loss()))
    assert text.count("<rect") == 3 * 2
    assert text.count("8.00 us to 10.0 us: 5 calls") == 3
    assert "<h2>f&lt;int&gt;</h2>" in text
    assert "f<int>" not in text
    assert text.count("<svg") == text.count("</svg>") == 1


@pytest.mark.parametrize("intervals", [1, 240, 241, 242, 481, 1000, 1009])
def test_columns_of_a_long_run_are_put_together(intervals):
    columns = Columns()
    for second in range(intervals):
        columns.add(Interval((second + 1) * 10**9, 1.0, (row(),)))
    assert 120 < len(columns) <= 240 or intervals < 120
    spans = [(column.begin_ns, column.end_ns) for column in columns]
    assert spans[0][0] == 0
    assert spans[-1][1] == intervals * 10**9
    assert [end for _, end in spans[:-1]] == [begin for begin, _ in spans[1:]]
    assert len({end - begin for begin, end in spans[:-1]}) <= 1
    calls = sum(sum(counts) for column in columns for counts in column.buckets.values())
    assert calls == 7 * intervals


def test_folded_lines_have_own_time():
    tree = (Branch(("a",), 1, 9000, 4000), Branch(("a", "b;c"), 5, 5000, 5000))
    printer = Folded(lambda: Result([], tree, 1.0), Shape())
    assert list(printer.end(Loss())) == ["a 4\n", "a;b:c 5\n"]


def test_a_page_has_the_slowest_calls_with_their_stacks():
    page = Page(lambda: Result([row()], (), 2.0), Shape(slow=True))
    calls = [CALL._replace(took_ns=took * 1000, user_stack=("f<int>",)) for took in range(150)]
    page.show(calls)
    text = "".join(page.end(Loss()))
    assert "The slowest of 150 calls" in text
    assert text.count("<pre>a\nf&lt;int&gt;</pre>") == 100
    assert text.index("149 us sync") < text.index("148 us sync") < text.index("50.0 us sync")
    assert "49.0 us sync" not in text


def test_it_is_said_why_stacks_are_not_walked_by_tables():
    walking = {"call_graph": "fp", "call_graph_why": "this kernel has no x()"}
    result = Result([row()], (), 2.0, walking)
    lines = "".join(LatencyText(lambda: result, Shape(slow=True)).end(Loss())).splitlines()
    said = "stacks by frame pointers, as tables are not possible: this kernel has no x()"
    assert lines[1:3] == [said, ""]
    summary = json.loads(next(iter(Json(lambda: result, Shape()).end(Loss()))))
    assert (summary["call_graph"], summary["call_graph_why"]) == tuple(walking.values())
