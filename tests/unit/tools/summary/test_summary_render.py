"""Golden text: the layout of perf's summary, and of ours where perf has none."""

from __future__ import annotations

import csv
import io
import json

import pytest

from purebpf.cli.loss import of_table
from purebpf.results import Loss
from purebpf.results.model.width import display_width
from purebpf.results.shape.histogram import BUCKETS
from purebpf.tools.summary.calls import Call
from purebpf.tools.summary.loss import losses
from purebpf.tools.summary.options import View
from purebpf.tools.summary.render import csv_header, render
from purebpf.tools.summary.request import SummaryOptions
from purebpf.tools.summary.statistics import Statistics
from purebpf.tools.summary.table import (
    Cost,
    Faults,
    Group,
    Label,
    OpenCall,
    SummaryRow,
    Table,
    sort_groups,
)

READ = Call("x86_64", 0, "read")
OPENAT = Call("i386", 295, "openat(i386)")
UNKNOWN = Call("x86_64", 9999, "syscall:9999")


def row(call: Call, *durations: int, errors: dict[int, int] | None = None) -> SummaryRow:
    found = Statistics()
    found.add(
        len(durations),
        sum((errors or {}).values()),
        sum(durations),
        min_ns=min(durations),
        max_ns=max(durations),
        squares=sum(each * each for each in durations),
    )
    found.add_errnos(errors or {})
    buckets = [0] * BUCKETS
    for each in durations:
        exponent = each.bit_length() - 1
        buckets[(exponent - 1) * 4 + (each >> (exponent - 2) & 3)] += 1
    found.add_buckets(buckets)
    return SummaryRow(call, found)


def table(mode: str, *groups: Group, open_calls: tuple[OpenCall, ...] = ()) -> Table:
    causes = dict.fromkeys(LOSSES, 0)
    loss = losses(causes, in_flight=0, still_open=0, misses=0, options=SummaryOptions())
    return Table(mode, 0, 1_000_000_007, 0, groups, open_calls, loss, Cost(1200, 4))


LOSSES = (
    *("open_at_start", "unpaired", "exits", "died", "unreturned", "tid_changed", "states_full"),
    "unnamed",
    *("rows_full", "errors_full", "histograms_full", "names_full", "follow_full"),
    *("switches_missed", "clock_backwards", "outside_namespace"),
)

SOME = (
    row(READ, 1_000_000, 2_000_000, 4_000_000),
    row(OPENAT, 10_000_000, errors={2: 1}),
    row(UNKNOWN, 500),
)


def text(made: Table, options: View) -> str:
    return "".join(render(made, options))


def test_rows_have_units_and_fit_80_columns() -> None:
    assert (
        text(table("total", Group(Label(), SOME)), View())
        == """
 Summary of events:

 total, 5 events

  syscall                   calls errors   total     min     avg     max std.err
  openat(i386)                  1      1 10.0 ms 10.0 ms 10.0 ms 10.0 ms    0.0%
  read                          3      0 7.00 ms 1.00 ms 2.33 ms 4.00 ms   37.8%
  syscall:9999                  1      0  500 ns  500 ns  500 ns  500 ns    0.0%

"""
    )


def test_a_long_name_has_a_line_for_itself() -> None:
    call = Call("i386", 407, "clock_nanosleep_time64(i386)")
    lines = text(table("total", Group(Label(), (row(call, 5),))), View()).splitlines()
    assert lines[6:8] == [
        "  clock_nanosleep_time64(i386)",
        f"{'':24}        1      0    5 ns    5 ns    5 ns    5 ns    0.0%",
    ]


@pytest.mark.parametrize("histogram", [False, True])
def test_great_numbers_and_wide_names_fit_80_columns(histogram: bool) -> None:
    great = row(Call("x", 1, "x" * 70), 1 << 40)
    great.statistics.add(
        1 << 60, 1 << 59, 1 << 62, min_ns=1 << 40, max_ns=1 << 61, squares=1 << 120
    )
    groups = [
        Group(Label(4194304, "\u6f22" * 15), (great,)),
        Group(Label(88, "/kubepods.slice/" * 20), (great,)),
    ]
    calls = (OpenCall(4194304, 4194304, "\u6f22" * 5, OPENAT, 1 << 62),)
    for mode in ("process", "cgroup"):
        view = View(histogram=histogram, errno_summary=True, inflight=True)
        made = text(table(mode, *groups, open_calls=calls), view)
        assert max(display_width(line.expandtabs()) for line in made.splitlines()) <= 80


def test_total_is_laid_out_as_perf_does() -> None:
    assert (
        text(table("total", Group(Label(), SOME)), View(layout="perf"))
        == """
 Summary of events:

 total, 5 events

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   openat(i386)           1      1    10.000    10.000    10.000    10.000      0.00%
   read                   3      0     7.000     1.000     2.333     4.000     37.80%
   syscall:9999           1      0     0.001     0.001     0.001     0.001      0.00%

"""
    )


@pytest.mark.parametrize(
    ("mode", "label", "title"),
    [
        ("thread", Label(4711, "worker"), " worker (4711), 3 events, 75.0%"),
        ("process", Label(12, ""), " ? (12), 3 events, 75.0%"),
        ("cgroup", Label(88, "/system.slice/ssh"), " cgroup /system.slice/ssh, 3 events, 75.0%"),
        ("cgroup", Label(88, ""), " cgroup id:88, 3 events, 75.0%"),
    ],
)
def test_groups_have_a_title(mode: str, label: Label, title: str) -> None:
    other = Group(Label(1, "other"), SOME[1:2])
    found = text(table(mode, other, Group(label, SOME[:1])), View())
    assert found.count("  syscall  ") == 2
    assert f"\n{title}\n\n  syscall " in found
    assert found.index("1 events, 25.0%") < found.index("3 events, 75.0%")  # by total time


@pytest.mark.parametrize("mode", ["thread", "process", "cgroup"])
def test_names_cannot_move_the_cursor(mode: str) -> None:
    name = "\x1b[2J\nroot"
    made = table(mode, Group(Label(7, name), SOME), open_calls=(OpenCall(7, 7, name, READ, 1),))
    found = text(made, View(inflight=True))
    assert "\x1b" not in found
    assert found.count("?[2J?root") == 2


def test_errors_stand_below_their_row() -> None:
    failed = row(READ, 1000, 1000, 1000, errors={11: 2, 512: 1})
    found = text(table("total", Group(Label(), (failed,))), View(errno_summary=True))
    assert found.endswith("0.0%\n\t\t\t\tEAGAIN: 2\n\t\t\t\tERESTARTSYS: 1\n\n")


PERCENTILES = (
    "       p50       p95       p99",
    "    (msec)    (msec)    (msec)",
    " --------- --------- ---------",
    "     1.966     3.835     3.835",
)


def test_a_histogram_follows_its_row() -> None:
    found = text(table("total", Group(Label(), SOME[:1])), View(histogram=True, layout="perf"))
    plain = text(table("total", Group(Label(), SOME[:1])), View(layout="perf"))
    lines = [line for line in plain.splitlines() if line.startswith("   ")]
    wide = "".join(f"{line}{more}\n" for line, more in zip(lines, PERCENTILES, strict=True))
    assert found.endswith(
        wide
        + """
     nsecs               : count     distribution
    524288 -> 1048575    : 1        |****************************************|
   1048576 -> 2097151    : 1        |****************************************|
   2097152 -> 4194303    : 1        |****************************************|


"""
    )


def test_percentiles_take_the_place_of_other_columns() -> None:
    found = text(table("total", Group(Label(), SOME[:1])), View(sort="p95"))
    assert "calls errors   total     p50     p95     p99     max\n" in found
    assert "    3      0 7.00 ms 1.97 ms 3.84 ms 3.84 ms 4.00 ms\n" in found


def test_no_calls_is_a_table_too() -> None:
    assert text(table("total"), View()) == "\n Summary of events:\n\n total, 0 events\n\n"


def test_calls_in_flight_the_longest_first() -> None:
    calls = (
        OpenCall(12, 13, "short", READ, 1_500_000),
        OpenCall(12, 12, "long", OPENAT, 9_000_000_000),
        OpenCall(1, 1, "init", READ, None),
    )
    found = text(table("total", open_calls=calls), View(inflight=True))
    assert found.endswith("""\
 Calls in flight:

   comm               pid      tid  syscall               elapsed (msec)
   --------------- ------- ------- --------------------- ----------------
   init                  1       1 read                    before the run
   long                 12      12 openat(i386)                  9000.000
   short                12      13 read                             1.500

""")
    assert "in flight" not in text(table("total", open_calls=calls), View())


def test_json_has_every_number_and_one_line() -> None:
    calls = (OpenCall(12, 13, "short", READ, 1_500_000),)
    made = table("thread", Group(Label(4711, "worker"), SOME[1:2]), open_calls=calls)
    written = text(made, View(format="json"))
    assert written.count("\n") == 1
    assert json.loads(written) == {
        "schema": "purebpf.summary/1",
        "duration_ns": 1_000_000_007,
        "mode": "thread",
        "groups": [
            {
                "group": {"tid": 4711, "comm": "worker"},
                "rows": [
                    {
                        "syscall": "openat(i386)",
                        "nr": 295,
                        "abi": "i386",
                        "calls": 1,
                        "errors": 1,
                        "total_ns": 10_000_000,
                        "min_ns": 10_000_000,
                        "avg_ns": 10_000_000.0,
                        "max_ns": 10_000_000,
                        "stddev_pct": 0.0,
                        "p50_ns": 10_000_000,
                        "p95_ns": 10_000_000,
                        "p99_ns": 10_000_000,
                        "untimed": 0,
                        "errno": {"ENOENT": 1},
                    }
                ],
            }
        ],
        "inflight": [
            {
                "pid": 12,
                "tid": 13,
                "comm": "short",
                "syscall": "read",
                "nr": 0,
                "abi": "x86_64",
                "elapsed_ns": 1_500_000,
            }
        ],
        "loss": dict.fromkeys([*LOSSES, "in_flight", "recursion_misses"], 0),
        "cost": {"run_time_ns": 1200, "run_cnt": 4},
    }


def test_json_intervals_are_numbered() -> None:
    made = table("total")._replace(interval=3, started_ns=3_000_000_000)
    found = json.loads(text(made, View(format="json", interval_s=1)))
    assert (found["interval"], found["started_ns"]) == (3, 3_000_000_000)


def test_csv_has_a_row_for_each_row() -> None:
    made = table("process", Group(Label(12, 'a,"b"'), SOME))
    written = csv_header() + text(made, View(format="csv"))
    rows = list(csv.DictReader(io.StringIO(written)))
    assert [each["syscall"] for each in rows] == ["openat(i386)", "read", "syscall:9999"]
    assert rows[0]["name"] == 'a,"b"'
    assert rows[0]["errno"] == "ENOENT=1"
    assert rows[1]["avg_ns"] == "2333333.333"
    assert all(None not in each and None not in each.values() for each in rows)


def test_top_cuts_groups_and_rows() -> None:
    groups = [Group(Label(number, ""), SOME[:number]) for number in (1, 2, 3)]
    found = sort_groups(groups, "calls", 2)
    assert [group.label.number for group in found] == [3, 2]
    assert [group.calls for group in found] == [5, 4]
    made = table("thread", *groups)
    lines = text(made, View(top=2)).splitlines()
    titles = [line.strip() for line in lines if "events" in line]
    assert titles == ["Summary of events:", "? (3), 5 events, 41.7%", "? (2), 4 events, 33.3%"]
    assert sum("syscall:9999" in line for line in lines) == 0
    document = json.loads(text(made, View(format="json", top=2)))
    assert [len(group["rows"]) for group in document["groups"]] == [2, 2]
    written = csv_header() + text(made, View(format="csv", top=1))
    assert [each["syscall"] for each in csv.DictReader(io.StringIO(written))] == ["openat(i386)"]


def test_room_for_histograms_and_errors_grows_with_the_rows() -> None:
    assert SummaryOptions().row_entries == 131072
    asked = SummaryOptions(map_entries=50_000)
    assert (asked.row_entries, asked.histogram_entries, asked.error_entries) == (50_000,) * 3
    counted = dict.fromkeys(LOSSES, 0) | {"histograms_full": 3, "errors_full": 2}
    loss = losses(counted, in_flight=0, still_open=0, misses=0, options=asked)
    texts = {cause.name: cause.what for cause in loss.causes}
    assert "at 50000 entries. Set --map-entries" in texts["histograms_full"]
    assert "Raise --map-entries" in texts["errors_full"]


def test_groups_of_one_label_have_a_weight_each() -> None:
    """A thread's number, once it is another thread's of the same name."""
    sizes = {7: (1, 3), 8: (2,)}
    groups = [Group(Label(each), SOME[:size]) for each in sizes for size in sizes[each]]
    assert [group.calls for group in sort_groups(groups, "calls")] == [5, 4, 3]


def test_equal_rows_are_sorted_by_name() -> None:
    rows = (row(UNKNOWN, 5), row(READ, 5), row(OPENAT, 5))
    (found,) = sort_groups([Group(Label(), rows)])
    assert [each.call.name for each in found.rows] == ["openat(i386)", "read", "syscall:9999"]


def explained(**counted: int) -> Loss:
    zero = dict.fromkeys(LOSSES, 0)
    return losses(
        zero | counted, in_flight=3, still_open=2, misses=0, options=SummaryOptions(map_entries=64)
    )


def test_the_loss_line_says_zero_too() -> None:
    (line,) = of_table(explained(exits=7, open_at_start=5))
    assert line == (
        "loss: open_at_start=7 in_flight=3 exits=7 died=0 unpaired=0 tid_changed=0 unnamed=0 "
        "unreturned=0 states_full=0 rows_full=0 errors_full=0 histograms_full=0 names_full=0 "
        "follow_full=0 "
        "recursion_misses=0 switches_missed=0 clock_backwards=0 outside_namespace=0"
    )


def test_a_loss_is_explained_and_counts_for_strict() -> None:
    loss = explained(rows_full=9)
    assert of_table(loss)[1:] == [
        (
            "  rows_full: 9 calls were dropped: the map of rows was full, "
            "at 64 entries. Raise --map-entries"
        )
    ]
    assert loss.any
    assert not explained(exits=7, died=1, unpaired=1).any


def test_percentiles_that_rows_are_sorted_by_are_shown() -> None:
    found = text(table("total", Group(Label(), SOME[:1])), View(sort="p95", layout="perf"))
    plain = text(table("total", Group(Label(), SOME[:1])), View(layout="perf"))
    lines = [line for line in plain.splitlines() if line.startswith("   ")]
    wide = "".join(f"{line}{more}\n" for line, more in zip(lines, PERCENTILES, strict=True))
    assert found.endswith(f"{wide}\n")
    assert "distribution" not in found


def test_a_kind_of_page_faults_that_is_not_counted_is_no_zero() -> None:
    group = Group(Label(), SOME, Faults(None, 17, ()))
    made = table("total", group)
    assert "\n  page faults: 17 major\n" in text(made, View())
    rows = [line for line in text(made, View(format="csv")).splitlines() if " faults," in line]
    assert [line.split(",")[4:8] for line in rows] == [["major faults", "", "", "17"]]
    (read,) = json.loads(text(made, View(format="json")))["groups"]
    assert read["faults"] == {"major": 17, "minor": None, "places": []}
    assert Faults(None, 17, ()).plus(Faults(None, 1, ()))[:2] == (None, 18)
