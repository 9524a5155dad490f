"""What ran, added up and printed."""

from __future__ import annotations

import json

from purebpf.observe.instruments.cpu_shares import CpuShare, Shares, TaskShare
from purebpf.results import Cause, Loss
from purebpf.results.shape.histogram import BUCKETS, bucket_bounds
from purebpf.tools.kwork.render import Layout, csv_header, render
from purebpf.tools.kwork.rows import Host, KworkRow, Result, merge, subtract, subtract_hosts

LOSS = Loss(causes=(Cause("rows_full", 3, "3 runs were not counted"),))


def buckets(*times_ns: int) -> tuple[int, ...]:
    counts = [0] * BUCKETS
    for time_ns in times_ns:
        (bucket,) = [
            number
            for number in range(BUCKETS)
            if bucket_bounds(number)[0] <= time_ns < bucket_bounds(number)[1]
        ]
        counts[bucket] += 1
    return tuple(counts)


def row(
    kind: str, name: str, *times_ns: int, delays: tuple[int, ...] = (), cpu: int = -1
) -> KworkRow:
    return KworkRow(
        *(kind, 7, name, cpu),
        *(len(times_ns), sum(times_ns), max(times_ns), 1000),
        *(len(delays), sum(delays), max(delays, default=0), 2000 if delays else 0),
        *(buckets(*times_ns), buckets(*delays)),
    )


RCU = row("softirq", "rcu", 1000, 3000, delays=(50, 70))
DISK = row("irq", "nvme0q1:36", 9000)
WORK = row("work", "a_function_of_a_very_long_name", 500, delays=(2_000_000,))
RESULT = Result((RCU, DISK, WORK), 2.0, 4.0, 2, LOSS)


def text(layout: Layout, result: Result = RESULT) -> str:
    return "".join(render(result, "text", layout))


def test_report() -> None:
    assert text(Layout()) == REPORT
    assert all(len(line) <= 80 for line in REPORT.splitlines())


REPORT = """\
KIND    NAME                       COUNT    TIME     AVG     P50     P99     MAX
irq     nvme0q1:36                     1 9.00 us 9.00 us 8.60 us 8.60 us 9.00 us
softirq rcu                            2 4.00 us 2.00 us  960 ns 2.78 us 3.00 us
work    a_function_of_a_very_...       1  500 ns  500 ns  474 ns  474 ns  500 ns
"""


def test_latency_has_what_waited() -> None:
    assert text(Layout("latency", "delay")) == LATENCY


LATENCY = """\
KIND    NAME                     DELAYED  WAITED     AVG     P50     P99     MAX
work    a_function_of_a_very_...       1 2.00 ms 2.00 ms 1.92 ms 1.92 ms 2.00 ms
softirq rcu                            2  120 ns   60 ns   52 ns   67 ns   70 ns
"""


def test_top_has_shares_of_all_cpus() -> None:
    busy = RESULT._replace(rows=(row("irq", "eth0:9", 1_000_000_000),))
    lines = text(Layout("top", is_interval=True), busy).splitlines()
    assert lines[1:3] == ["4.000 s", "of 2 CPUs: irq 25.00%"]
    assert lines[4].split()[5] == "25.00%"


def test_rows_beyond_the_most_are_counted_and_nothing_is_said_so() -> None:
    assert text(Layout(most=1)).splitlines()[-1] == "... 2 more: -E 3"
    assert text(Layout(), RESULT._replace(rows=())) == "nothing ran\n"


def test_a_histogram_and_the_stack_follow_their_row() -> None:
    one = RESULT._replace(rows=(WORK._replace(stack=("queue_work_on", "vfs_\x1bwrite")),))
    lines = text(Layout(histogram=True), one).splitlines()
    assert lines[2:4] == ["            queue_work_on", "            vfs_?write"]
    assert "256 -> 511" in lines[5]


def test_rows_of_cpus_are_merged() -> None:
    zero, one = row("irq", "a:1", 10, 20), row("irq", "a:1", 40, delays=(3,))
    (both,) = merge([zero, one])
    assert (both.runs, both.total_ns, both.max_ns) == (3, 70, 40)
    assert (both.delayed, both.delay_ns, both.max_delay_ns) == (1, 3, 3)
    assert both.buckets == buckets(10, 20, 40)
    assert len(merge([zero, one._replace(cpu=1)])) == 2


def test_an_interval_is_what_came_since_the_last() -> None:
    before, now = row("irq", "a:1", 10), row("irq", "a:1", 10, 20, 30)
    other = row("irq", "b:2", 5)._replace(id=8)
    left, new = subtract([now, other], [before])
    assert (left.runs, left.total_ns, left.buckets) == (2, 50, buckets(20, 30))
    assert new == other
    assert subtract([now], [now]) == []


def test_json_and_csv_have_every_row() -> None:
    document = json.loads("".join(render(RESULT, "json", Layout(most=1))))
    assert [found["name"] for found in document["rows"]] == [DISK.name, RCU.name, WORK.name]
    assert document["rows"][1]["delay_buckets"] == [[48, 56, 1], [64, 80, 1]]
    assert document["loss"] == {"rows_full": 3}
    address = RESULT._replace(rows=(WORK._replace(id=0xFFFFFFFF81356CA0),))
    assert [
        json.loads("".join(render(one, "json", Layout())))["rows"][0]["id"]
        for one in (address, RESULT)
    ] == ["0xffffffff81356ca0", 7]
    lines = [csv_header().strip(), *"".join(render(RESULT, "csv", Layout())).splitlines()]
    assert lines[2] == "4.000000,softirq,rcu,,2,4000,3000,960,2780,2,120,70,52,67"
    assert len({line.count(",") for line in lines}) == 1


SHARES = Shares(
    (CpuShare(0, 900_000_000, 60_000_000, 40_000_000, 0), CpuShare(3, 0, 0, 0, 1_000_000_000)),
    (TaskShare(43, 42, "a\x1b", 600_000_000), TaskShare(7, 7, "kworker/0:1", 300_000_000)),
)


def test_top_begins_with_cpus_and_tasks() -> None:
    lines = text(Layout(mode="top", most=1), RESULT._replace(shares=SHARES)).splitlines()
    assert lines[:6] == [
        "    CPU   TASKS SOFTIRQ     IRQ    IDLE",
        "      0  90.00%   6.00%   4.00%   0.00%",
        "      3   0.00%   0.00%   0.00% 100.00%",
        "    PID     TID    %CPU    TIME COMM",
        "     42      43  60.00%  600 ms a?",
        "... 1 more: -E 2",
    ]
    assert lines[6].startswith("of 2 CPUs: ")


def test_json_of_top_has_every_task() -> None:
    (line,) = render(RESULT._replace(shares=SHARES), "json", Layout(mode="top", most=1))
    document = json.loads(line)
    assert [task["tid"] for task in document["tasks"]] == [43, 7]
    assert document["cpu_times"][0]["irq_ns"] == 40_000_000
    (line,) = render(RESULT, "json", Layout())
    assert "tasks" not in json.loads(line)


NET = row("softirq", "net_rx", 50_000_000, 30_000_000)
HOSTS = (
    Host("net_rx", 12, "sender", 60_000_000),
    Host("timer", 13, "other", 10_000_000),
    Host("net_rx", 14, "collector", 15_000_000),
    Host("net_rx", 15, "bystander", 1_000_000),
)


def test_the_processes_that_a_busy_softirq_interrupts_are_named() -> None:
    result = Result((NET, RCU), 2.0, 4.0, 2, LOSS, hosts=HOSTS)
    line = text(Layout(), result).splitlines()[2]
    assert line == "        in the time of sender (12) 75 %, collector (14) 19 %"
    document = json.loads("".join(render(result, "json", Layout())))
    assert document["hosts"][0]["total_ns"] == 60_000_000


def test_softirqs_that_take_little_time_name_nobody() -> None:
    rows = (RCU, NET._replace(cpu=1), NET._replace(kind="irq"))
    result = Result(rows, 20.0, 4.0, 2, LOSS, hosts=(*HOSTS, Host("rcu", 12, "sender", 4000)))
    assert "in the time of" not in text(Layout(), result)


def test_hosts_of_an_interval_are_the_difference() -> None:
    now = (HOSTS[0]._replace(total_ns=61_000_000), HOSTS[2], Host("net_rx", 16, "new", 5))
    assert subtract_hosts(now, HOSTS) == (
        Host("net_rx", 12, "sender", 1_000_000),
        Host("net_rx", 16, "new", 5),
    )
