"""Rows of top's screen: functions, callers and owners."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from purebpf.cli.sheet import State, Step, arrange
from purebpf.results import Labels, Profile
from purebpf.symbols.frame import Address, Frame
from purebpf.tools.top.render import render
from purebpf.tools.top.rows import COLUMNS, rows
from tests.support.builders.profiles import MAIN, START, WORK, example


def found(*path: tuple[str, str], by: str = "function") -> dict[str, tuple[float, ...]]:
    steps: Sequence[Step] = [Step(kind, key, key) for kind, key in path]
    return {row.name: row.values[:2] for row in rows(example(), by, steps, 0.01)}


def test_functions_have_their_own_and_total_weight() -> None:
    assert found()["work [app]"] == (40, 70)


def test_a_function_has_callers_and_those_have_callers() -> None:
    assert found(("function", "help [app]")) == {"work [app]": (0, 30), "main [app]": (10, 10)}
    inside = found(("function", "help [app]"), ("function", "work [app]"))
    assert inside == {"work [app]": (0, 30)}  # it is recursive
    assert found(("function", "main [app]"))["[no caller]"] == (0, 4)


def test_callers_are_those_of_the_process_that_was_looked_into() -> None:
    assert found(("process", "tool (8)"))["main [app]"][1] == 4
    assert "work [app]" not in found(("process", "tool (8)"))


@pytest.mark.parametrize(
    ("by", "name", "weight"),
    [
        ("process", "app (185)", 80),
        ("comm", "app", 80),
        ("cgroup", "/system.slice/app.service", 80),
        ("module", "/srv/app", 50),
        ("thread", "app (185)", 80),
    ],
)
def test_owners_have_what_they_ran(by: str, name: str, weight: int) -> None:
    assert found(by=by)[name][0] == weight


def test_shares_and_cpus_are_of_the_whole() -> None:
    (row,) = [row for row in rows(example(), "function", (), 0.02) if row.name == "work [app]"]
    assert row.cells == ("40.00%", "70.00%", "0.80")
    assert row.share == 0.4


def test_threads_of_a_process_are_apart() -> None:
    profile = Profile()
    for tid in (7, 8):
        profile.add((WORK, MAIN, START), (), tid, Labels(f"w{tid}", 7, tid))
    assert {row.name: row.values[0] for row in rows(profile, "thread", (), 0)} == {
        "w7 (7)": 7,
        "w8 (8)": 8,
    }


def test_idle_waits_stand_below_work_that_waits_whatever_their_time() -> None:
    futex = (Frame("futex_wait", 0, "kernel", Address(1), "kernel"),)

    def script(name: str, file: str, line: int) -> Frame:
        return Frame(name, 0, file, Address(2), "python", line=line)

    idle = (
        script("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", 81),
        script("Thread.run", "/usr/lib/python3.11/threading.py", 975),
    )
    inside = (
        Frame("__new_sem_wait_slow64", 0, "/usr/lib/libc.so.6", Address(3), "user"),
        script("reserve", "/srv/stock.py", 22),
        script("Thread.run", "/usr/lib/python3.11/threading.py", 975),
    )
    profile = Profile(unit="ns")
    for tid, stack, weight in ((7, idle, 9_000_000_000), (8, inside, 1_000_000)):
        profile.add(stack, futex, weight, Labels("python3", 5, tid))
    lines = [line.split("  ")[-1] for line in render(profile, by="place", lines=9, heading="x")]
    assert lines[2].strip() == "waits for a lock in reserve (stock.py:22)"
    assert lines[3].strip().startswith("idle: waits")
    shown = arrange(State("place", "self"), COLUMNS, rows(profile, "place", (), 0))
    assert [row.name.startswith("idle: ") for row in shown] == [False, True]
