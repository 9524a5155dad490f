"""One screen, to the letter, and what is left out of it."""

from __future__ import annotations

import json

from purebpf.results import Labels, Loss, Marks, Profile
from purebpf.results.shape.distribution import Distribution, Group
from purebpf.summary.calls import Call
from purebpf.summary.statistics import Statistics
from purebpf.summary.table import Cost, Label, Row, Table
from purebpf.summary.table import Group as Calls
from purebpf.symbols.frame import Address, Frame
from purebpf.triage.findings import Findings, find
from purebpf.triage.options import Options, parse
from purebpf.triage.render import document, pieces


def kernel(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(name, 0, "kernel", Address(1), "kernel") for name in names)


USER = (Frame("work()", 0, "/srv/shop", Address(2), "user"),)


def findings() -> Findings:
    profile = Profile(about={"elapsed_s": 2.0, "frequency_hz": 50, "cpus": [0, 1]})
    profile.add(USER, (), 75, Labels("worker", 185, process="shop"))
    profile.add((), kernel("vfs_read"), 25, Labels("cat", 7))
    waits = Profile(unit="ns")
    for state, stack, user, weight in (
        ("D", kernel("io_schedule"), USER, 1_500_000_000),
        ("S", kernel("futex_wait"), USER, 20_000_000),
        ("S", kernel("do_epoll_wait"), USER, 60_000_000_000),  # waits for requests
        ("S", kernel("some_thread_fn"), (), 60_000_000_000),  # a kernel thread
        ("I", kernel("worker"), (), 60_000_000_000),
    ):
        labels = Labels("shop", 185, 186, state=state)
        waits.add(user, stack, weight, labels, marks=Marks(times=3))
    statistics = Statistics()
    statistics.add(100, 40, 0, min_ns=0, max_ns=0, squares=0)
    statistics.add_errnos({2: 30, 11: 10})
    calls = Calls(Label(), (Row(Call(abi="64", nr=257, name="openat"), statistics),))
    table = Table("total", 0, 0, 0, (calls,), (), Loss(), Cost())
    queue = [Distribution(Group(), [0, 0, 5], 10_000)]
    return find(profile, waits, queue, table)


def test_each_part_names_the_command_that_looks_closer() -> None:
    text = "".join(pieces(findings(), 5))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "  75.0 %   0.75  shop (185)" in text
    assert any(line.endswith("-> profile -p 185") for line in lines)
    assert any("work() [shop]" in line for line in lines)
    (stuck,) = (line for line in lines if "io_schedule" in line)
    assert "1.5 s  shop (185): D, io_schedule" in stuck
    assert stuck.endswith("-> offcpu -p 185 --state D")
    (locked,) = (line for line in lines if "futex_wait" in line)
    assert "20 ms" in locked
    assert "30 of 100 openat (30 %), mostly ENOENT" in text
    assert "Run queue: p50 " in text


def test_what_waits_for_work_is_left_out() -> None:
    assert [wait.where for wait in findings().waits] == ["io_schedule", "futex_wait"]


def test_json_has_everything() -> None:
    tree = json.loads(document(findings()))
    assert tree["busy_cpus"] == 1.0
    assert [share["name"] for share in tree["processes"]] == ["shop", "cat"]
    assert tree["failures"] == [{"name": "openat", "failed": 30, "calls": 100, "error": "ENOENT"}]
    assert set(tree["loss"]) == {"profile", "offcpu", "summary"}


def test_options() -> None:
    assert parse([]) == Options()
    assert parse(["5", "-n", "3"]) == Options(duration_s=5.0, lines=3)
