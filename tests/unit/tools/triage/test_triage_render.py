"""One screen, to the letter, and what is left out of it."""

from __future__ import annotations

import json

import pytest

from purebpf.measure.latency import Interval
from purebpf.results import Labels, Loss, Marks, Profile
from purebpf.results.model.stack_end import CUT
from purebpf.results.shape.distribution import Distribution, Group
from purebpf.symbols.frame import Address, Frame
from purebpf.tools.summary.calls import Call
from purebpf.tools.summary.statistics import Statistics
from purebpf.tools.summary.table import Cost, Label, Row, Table
from purebpf.tools.summary.table import Group as Calls
from purebpf.tools.triage.findings import Findings, Share, find
from purebpf.tools.triage.locks import find_locks
from purebpf.tools.triage.options import Options, parse
from purebpf.tools.triage.render import document, pieces


def kernel(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(name, 0, "kernel", Address(1), "kernel") for name in names)


USER = (Frame("work()", 0, "/srv/shop", Address(2), "user"),)


UNNAMED = (Frame("shop!0x17f0", 0, "/srv/shop", Address(3), "user"),)


def app(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(name, 0, "/srv/shop", Address(2), "user") for name in names)


def findings() -> Findings:
    profile = Profile(about={"elapsed_s": 2.0, "frequency_hz": 50, "cpus": [0, 1]})
    profile.add(USER, (), 75, Labels("worker", 185, process="shop"))
    profile.add((), kernel("vfs_read"), 25, Labels("cat", 7))
    waits = Profile(unit="ns")
    for state, stack, user, weight in (
        ("D", kernel("io_schedule"), USER, 1_500_000_000),
        ("S", kernel("futex_wait"), USER, 20_000_000),
        ("S", kernel("do_epoll_wait"), USER, 60_000_000_000),  # waits for requests
        ("S", kernel("sigsuspend.isra.0"), USER, 60_000_000_000),  # for a signal
        ("S", kernel("futex_wait"), app("pthread_cond_wait", "pool"), 60_000_000_000),
        ("S", kernel("futex_wait_queue"), UNNAMED, 60_000_000_000),  # the whole run: parked
        ("S", kernel("futex_do_wait"), UNNAMED, 30_000_000),
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
    return find(profile, waits, Interval(queue, 2.0, Loss()), table)


@pytest.mark.parametrize(
    ("inner", "outer", "lock"),
    [
        (("futex_wait",), ("__lll_lock_wait", "pthread_mutex_lock", "work()"), ("futex", "work()")),
        (("futex_wait_queue", "futex_wait"), ("work()", "main"), ("futex", "work()")),
        (("futex_wait",), ("__pthread_cond_wait", "work()"), None),
        (("futex_wait",), ("runtime.futex", "runtime.notesleep", "runtime.stopm"), None),
        (("futex_wait",), (), None),
        (("futex_wait",), ("qemu_event_wait", "call_rcu_thread"), None),
        (("futex_wait",), ("__futex_abstimed_wait_common64", "start_thread"), None),
        (("__mutex_lock.constprop.0", "pipe_write"), ("write",), ("__mutex_lock", "pipe_write")),
        (("rwsem_down_write_slowpath", "down_write", "dup_mmap"), ("fork",),
         ("rwsem_down_write_slowpath", "dup_mmap")),
        (("io_schedule",), ("read",), None),
    ],
)  # fmt: skip
def test_locks_differ_from_waits_for_work(
    inner: tuple[str, ...], outer: tuple[str, ...], lock: tuple[str, str] | None
) -> None:
    waits = Profile(unit="ns")
    waits.add(app(*outer), kernel(*inner), 2_000_000_000, Labels("shop", 185, state="S"))
    assert [(wait.what, wait.where) for wait in find_locks(waits)] == ([lock] if lock else [])


def test_a_stack_that_is_cut_does_not_name_a_lock() -> None:
    waits = Profile(unit="ns")
    cut = Frame("[cut]", 0, "", Address(0), CUT)
    waits.add((cut,), kernel("futex_wait"), 2_000_000_000, Labels("shop", 185, state="S"))
    assert find_locks(waits) == []


def test_locks_have_a_part_of_the_screen() -> None:
    text = "".join(pieces(findings(), 5))
    assert "Locks: 20.0 ms" in text
    assert " 20.0 ms  shop (185): futex in work()" in text
    assert json.loads(document(findings()))["locks"][0]["seconds"] == 0.02


def test_each_part_names_the_command_that_looks_closer() -> None:
    text = "".join(pieces(findings(), 5))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "  75.0 %   0.75  shop (185)" in text
    assert any(line.endswith("-> profile -p 185") for line in lines)
    assert any("work() [shop]" in line for line in lines)
    (stuck,) = (line for line in lines if "io_schedule" in line)
    assert "1.50 s  shop (185): D, io_schedule" in stuck
    assert stuck.endswith("-> offcpu -p 185 --state D")
    (locked,) = (line for line in lines if "futex_wait" in line)
    assert "20.0 ms" in locked
    assert "30 of 100 openat (30 %), mostly ENOENT" in text
    assert "Run queue: p50 " in text


def test_what_waits_for_work_is_left_out() -> None:
    waits = [wait.where for wait in findings().waits]
    assert waits == ["io_schedule", "futex_do_wait", "futex_wait"]


def test_the_first_line_says_whether_the_cpus_are_too_few() -> None:
    busy = findings()._replace(busy=1.98, queued=13.44)
    first, *_ = "".join(pieces(busy, 5)).strip().splitlines()
    assert first.startswith("CPUs: 1.98 of 2 busy, 13.4 threads wait for one  ")
    idle, *_ = "".join(pieces(findings(), 5)).strip().splitlines()
    assert idle.startswith("CPUs: 1.00 of 2 busy  ")


def test_processes_of_one_name_are_a_line() -> None:
    shares = [Share("cc1 plus", pid, 10.0, 0.2) for pid in (11, 12, 13)]
    shares.insert(1, Share("make", 10, 20.0, 0.4))
    lines = "".join(pieces(findings()._replace(processes=shares), 5)).splitlines()
    compilers = lines.index(next(line for line in lines if "cc1 plus" in line))
    assert "30.0 %   0.60  cc1 plus (3 PIDs)" in lines[compilers]
    assert lines[compilers].endswith("-> profile --comm 'cc1 plus'")
    assert "20.0 %   0.40  make (10)" in lines[compilers + 1]


def test_the_answer_is_in_the_first_ten_lines() -> None:
    busy = findings()._replace(processes=[Share(f"p{n}", n, 1.0, 0.1) for n in range(20)])
    first = "".join(pieces(busy, 5)).strip().splitlines()[:10]
    assert any(line.startswith("Run queue: p50") for line in first)


def test_json_has_everything() -> None:
    tree = json.loads(document(findings()))
    assert tree["busy_cpus"] == 1.0
    assert [share["name"] for share in tree["processes"]] == ["shop", "cat"]
    assert tree["failures"] == [{"name": "openat", "failed": 30, "calls": 100, "error": "ENOENT"}]
    assert set(tree["loss"]) == {"profile", "offcpu", "summary"}


def test_options() -> None:
    assert parse([]) == Options()
    assert parse(["5", "-n", "3"]) == Options(duration_s=5.0, lines=3)
