"""Readings of counters, added up, scaled, and put into relation."""

from __future__ import annotations

import json
import statistics

import pytest

from purebpf.tools.stat.counts import Count, CountedEvent, Part, Result, Usage, add_up, losses
from purebpf.tools.stat.metrics import Metric, metrics
from purebpf.tools.stat.render import csv_header, render
from purebpf.tools.stat.repeats import average

CLOCK = CountedEvent("task-clock", "task-clock", "ukh", 0, "ns")
CYCLES = CountedEvent("cycles", "cpu-cycles", "ukh", 1)
INSTRUCTIONS = CountedEvent("instructions", "instructions", "ukh", 1)
MISSES = CountedEvent("L1-dcache-load-misses", "L1-dcache-load-misses", "ukh", 2)
LOADS = CountedEvent("L1-dcache-loads", "L1-dcache-loads", "ukh", 2)
FAULTS = CountedEvent("faults", "page-faults", "ukh", 3)
ABSENT = CountedEvent("LLC-loads", "LLC-loads", "ukh", 4, why_not="no PMU has it")


def count(event: CountedEvent, value: int, running: int = 100, key: str = "") -> Count:
    (only,) = add_up([event], [key], [Part(0, key, value, 100, running)])
    return only


def test_counters_are_added_up_by_row_and_event() -> None:
    parts = [
        Part(0, "CPU 0", 3, 10, 10),
        Part(1, "CPU 0", 5, 10, 10),
        Part(0, "CPU 1", 7, 20, 20),
        Part(0, "CPU 0", 11, 10, 10),
    ]
    counts = add_up([FAULTS, CYCLES], ["CPU 0", "CPU 1"], parts)
    assert [(one.key, one.event, one.value) for one in counts] == [
        ("CPU 0", FAULTS, 14),
        ("CPU 0", CYCLES, 5),
        ("CPU 1", FAULTS, 7),
        ("CPU 1", CYCLES, 0),
    ]
    assert not any(one.is_scaled for one in counts)


def test_each_counter_is_scaled_by_its_own_times() -> None:
    (cycles,) = add_up([CYCLES], [""], [Part(0, "", 100, 10, 5), Part(0, "", 70, 10, 10)])
    assert (cycles.counted, cycles.value, cycles.is_scaled) == (170, 270, True)
    assert cycles.percent_running == 75


def test_an_event_that_never_had_a_counter_is_not_zero() -> None:
    (cycles,) = add_up([CYCLES], [""], [Part(0, "", 0, 10, 0)])
    assert cycles.value is None
    loss = losses([cycles])
    assert loss.any
    assert [cause.lost for cause in loss.causes] == [0, 1]


def test_a_task_that_never_ran_counted_zero() -> None:
    (faults,) = add_up([FAULTS], [""], [Part(0, "", 0, 0, 0)])
    assert faults.value == 0
    assert not losses([faults]).any


def test_an_unsupported_event_says_why() -> None:
    (absent,) = add_up([ABSENT], [""], [])
    assert absent.value is None
    (what,) = [cause.what for cause in losses([absent]).causes if cause.lost]
    assert what == "1 event cannot be counted here (LLC-loads): no PMU has it"


def test_metrics_relate_counts_of_one_row() -> None:
    row = [
        count(CLOCK, 2_000_000_000),
        count(CYCLES, 6_000_000_000),
        count(INSTRUCTIONS, 9_000_000_000),
        count(MISSES, 5),
        count(LOADS, 200),
        count(FAULTS, 30),
    ]
    assert metrics(row, 4.0) == [
        Metric(0.5, "CPUs used"),
        Metric(3.0, "GHz"),
        Metric(1.5, "per cycle"),
        Metric(2.5, "% of L1-dcache-loads"),
        Metric(50.0, "/s"),
        Metric(7.5, "/s"),
    ]


def test_a_metric_of_an_estimate_is_one() -> None:
    row = [count(CYCLES, 100, running=50), count(INSTRUCTIONS, 100)]
    assert metrics(row, 1.0)[1] == Metric(0.5, "per cycle", is_estimate=True)


def test_other_rows_and_other_spaces_are_not_related() -> None:
    users = CYCLES._replace(spaces="u")
    row = [count(INSTRUCTIONS, 8, key="a"), count(CYCLES, 4, key="b"), count(users, 2, key="a")]
    assert metrics(row, 2.0)[0] == Metric(4.0, "/s")
    assert metrics([count(INSTRUCTIONS, 8), count(CYCLES, 0)], 2.0)[0] == Metric(4.0, "/s")


def result(*counts: Count, elapsed_s: float = 2.0) -> Result:
    return Result(counts, elapsed_s, elapsed_s, losses(counts), (), Usage(0.25, 0.125))


def test_repeated_runs_have_a_mean_and_its_standard_error() -> None:
    values = (1009, 1013, 1031)
    total = average([result(count(FAULTS, value), elapsed_s=value / 100) for value in values])
    (faults,) = total.counts
    assert faults.value == statistics.mean(values)
    assert faults.standard_error == pytest.approx(statistics.stdev(values) / 3**0.5)
    assert (total.runs, faults.counted) == (3, sum(values))
    assert total.elapsed_error == pytest.approx(faults.standard_error / 100)
    assert average([total]) is total


def test_text() -> None:
    row = [
        count(CLOCK, 1_234_567_890),
        count(CYCLES, 1_234_567_890, running=45),
        count(FAULTS, 1_009),
        count(LOADS, 0, running=0),
        add_up([ABSENT], [""], [])[0],
    ]
    assert "".join(render(result(*row), "text")) == TEXT
    assert all(len(line) <= 80 for line in TEXT.splitlines())


TEXT = """\
             COUNT  EVENT                      RATE
      1,234.568 ms  task-clock                 0.617 CPUs used
    ~2,740,000,000  cycles                     ~2.22 GHz  (had a counter 45 %)
             1,009  faults                     504 /s
               n/c  L1-dcache-loads            the CPU had no free counter
               n/s  LLC-loads                  not supported here
elapsed 2.000 s, user 0.250 s, system 0.125 s
"""


def test_text_of_rows_and_intervals_has_a_title_for_each() -> None:
    row = [count(FAULTS, 3, key="CPU 0"), count(FAULTS, 5, key="CPU 1")]
    lines = "".join(render(result(*row), "text", is_interval=True)).splitlines()
    assert lines[0] == "2.000 s  CPU 0"
    assert lines[3] == "2.000 s  CPU 1"
    assert len(lines) == 5


def test_text_of_repeats() -> None:
    total = average([result(count(FAULTS, 100)), result(count(FAULTS, 101))])
    lines = "".join(render(total, "text")).splitlines()
    assert lines[1:] == [
        "             100.5  faults                     50.2 /s  +- 0.498 %",
        "elapsed 2.000 s +- 0 %, user 0.250 s, system 0.125 s, mean of 2 runs",
    ]


def test_json_and_csv_have_everything() -> None:
    one = result(count(CYCLES, 90, running=50), add_up([ABSENT], [""], [])[0])
    document = json.loads("".join(render(one, "json")))
    cycles, absent = document["counts"]
    assert (cycles["value"], cycles["counted"], cycles["percent_running"]) == (180, 90, 50.0)
    assert cycles["metric"] == {"value": 90.0, "unit": "/s", "is_estimate": True}
    assert (absent["value"], absent["why_not"]) == (None, "no PMU has it")
    assert document["loss"] == {"not_supported": 1, "not_counted": 0}
    assert document["command"] == {"user_s": 0.25, "system_s": 0.125}
    lines = [csv_header(), *"".join(render(one, "csv")).splitlines()]
    assert lines[1] == "2.000000,,cycles,180,,,50.00,90,/s,"
    assert lines[2] == "2.000000,,LLC-loads,,,,100.00,,,no PMU has it"
    assert len({line.count(",") for line in lines}) == 1
