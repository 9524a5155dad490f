"""run_script() gives the events of a script as values."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

import purebpf
from purebpf.observe.script.events import MapPrinted, Printed
from purebpf.script.script_error import ScriptError

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]


def test_values_keep_their_types() -> None:
    text = (
        'begin { printf("%d %s\\n", $1, str($2)); print((1, "a")); @[1, "k"] = -2; @n = 3; '
        '@h = hist(5); print(@); } end { print("bye"); }'
    )
    assert [*purebpf.run_script(text, 5, "x")] == [
        Printed("5 x\n", (5, "x")),
        Printed("(1, a)\n", ((1, "a"),)),
        MapPrinted("@", {(1, "k"): -2}),
        Printed("bye\n", ("bye",)),
        MapPrinted("@", {(1, "k"): -2}),
        MapPrinted("@h", {None: {4: 1}}),
        MapPrinted("@n", {None: 3}),
    ]


def test_maps_can_be_read_while_the_script_runs_and_stop_ends_it() -> None:
    with purebpf.run_script("interval:ms:1 { @++; }") as running:
        while not running.maps["@"]:
            time.sleep(0.01)
        thread = threading.Thread(target=running.stop)
        thread.start()
        events = [*running]
        thread.join()
    assert [type(event) for event in events] == [MapPrinted]
    running.stop()


def test_a_script_ends_with_its_command_and_after_its_time() -> None:
    text = "interval:s:100 { } end { print(cpid); }"
    (event,) = purebpf.run_script(text, command="/bin/true")
    assert isinstance(event, Printed)
    assert event.values[0] > 0
    assert [*purebpf.run_script("interval:s:100 { }", seconds=0.05)] == []


def test_async_for_gives_the_same_events() -> None:
    async def collect() -> list[object]:
        text = 'interval:ms:1 { printf("%d", @++); if (@ == 7) { exit(); } }'
        return [event async for event in purebpf.run_script(text)]

    events = asyncio.run(collect())
    assert events[:7] == [Printed(str(number), (number,)) for number in range(7)]
    assert isinstance(events[7], MapPrinted)


def test_a_wrong_script_is_refused_and_nothing_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ScriptError, match="Unknown function"):
        purebpf.run_script("begin { nonsense(); }")
    for event in purebpf.run_script('interval:ms:1 { printf("x"); }'):
        assert event == Printed("x")
        break
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_script_is_compiled_without_a_kernel_and_its_ring_has_the_size_that_it_asks_for() -> None:
    spec = purebpf.compile_script("config = { perf_rb_pages = 3 } begin { print($1); }", 5)
    assert spec.maps["events"].max_entries == 4 * 4096
    with pytest.raises(ScriptError, match="perf_rb_pages must be"):
        purebpf.compile_script("config = { perf_rb_pages = 0 } begin { }")


def test_a_time_series_has_the_values_of_its_intervals() -> None:
    text = """begin {
        @last = tseries(2, 1h, 3); @last = tseries(7, 1h, 3);
        @sum["a"] = tseries(3, 1h, 3, "sum"); @sum["a"] = tseries(-10, 1h, 3, "sum");
        @least = tseries(5, 1h, 3, "min"); @least = tseries(-6, 1h, 3, "min");
        @least = tseries(9, 1h, 3, "min");
        printf("%d", nsecs(sw_tai)); }"""
    before = time.clock_gettime_ns(time.CLOCK_TAI)
    printed, *maps = purebpf.run_script(text)
    assert isinstance(printed, Printed)
    assert abs(printed.values[0] - before) < 60 * 10**9
    values = {
        item.name: next(iter(item.items.values())) for item in maps if isinstance(item, MapPrinted)
    }
    assert {name: [value for _, value in series.points] for name, series in values.items()} == {
        "@last": [7],
        "@sum": [-7],
        "@least": [-6],
    }
    (begin, _) = values["@last"].points[0]
    assert 0 <= time.time_ns() - begin < 2 * 3600 * 10**9


def test_timers_stop_when_the_script_has_called_exit() -> None:
    maps = purebpf.run_script("interval:us:50 { @++; exit(); }")
    assert [*maps] == [MapPrinted("@", {None: 1})]


def test_commands_that_wait_do_not_delay_the_end() -> None:
    """Each run of the block starts a command that takes longer than the time to the next run."""
    text = 'interval:ms:2 { system("sleep 0.2"); } begin { system("echo begin"); } end { @e = 1; }'
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "purebpf", "script", "-q", "--unsafe", "-e", text],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n"
        time.sleep(1)  # many more commands wait than can run in a minute
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert output.endswith("@e: 1\n")
    assert re.search(r"Lost \d+ commands of system\(\)", errors)
