"""Locks of interpreters: Ruby's global lock, and Python's."""

from __future__ import annotations

import errno

from purebpf.findings.facts import (
    CallCount,
    Cgroup,
    Endpoint,
    Facts,
    Process,
    StackFrame,
    ThreadTime,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, THREAD, facts, native, own, running, waiting

RUBY = "/usr/bin/ruby3.1"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"
WAIT = (native("__futex_abstimed_wait_common"), native("pthread_cond_wait"))
LOCK = (native("rb_native_cond_wait"), native("libruby-3.1.so.3.1.2!0x20f6f0", LIBRARY))


def serving(*inside: str, ran_s: float = 3.0, queued_s: float = 5.0) -> Facts:
    """Four threads in a function that waits, and one that runs."""
    stack = (*WAIT, *LOCK, *(native(name, LIBRARY) for name in inside), native("start_thread"))
    waits = [waiting(7, tid, "futex", *stack) for tid in range(10, 14)]
    hog = running(7, 20, native("rb_vm_exec", LIBRARY), seconds=ran_s, comm="shop.rb:7")
    times = (ThreadTime(7, 20, ran_s, queued_s),)
    return facts(*waits, hog, exe=RUBY)._replace(threads=times)


def test_threads_that_return_to_ruby_wait_for_its_lock() -> None:
    finding = next(one for one in find(serving("rb_nogvl", "rb_io_close")) if one.kind == "gil")
    assert finding.text.startswith("4 threads wait for Ruby's global lock (GVL); thread 20")
    assert "shop.rb:7" in finding.text


def test_other_waits_and_a_thread_that_hardly_runs_are_none() -> None:
    quiet = serving("rb_nogvl", ran_s=0.5, queued_s=0.0)
    for measured in (serving("rb_queue_pop"), serving("a_library_lock", "rb_nogvl"), quiet):
        assert "gil" not in [one.kind for one in find(measured)]


def test_a_script_that_asks_ruby_for_collections_spends_its_time_on_them() -> None:
    stack = (native("start", "<internal:gc>"), native("report", "/srv/report.rb"))
    busy = facts(running(7, 7, *stack, seconds=6.0), exe=RUBY)
    assert "gc" in [one.kind for one in find(busy)]
    other = facts(running(7, 7, stack[1], seconds=6.0), exe=RUBY)
    assert "gc" not in [one.kind for one in find(other)]


WORD = 0xA5B8F0
"""The first futex word of a condition variable."""


def contended(*words: int, expired: int = 2000, exe: str = PYTHON) -> Facts:
    """Three threads that wait at some futex words by turns, without a stack, while one runs."""
    waits = tuple(
        WaitSum(7, tid, "futex", word, -1, 0, Endpoint(), 1.4, 240, 0.03)
        for tid in (8, 9, 10)
        for word in words
    )
    expiries = (CallCount(7, "futex", errno.ETIMEDOUT, expired),)
    hog = running(7, 20, own("rebuild", 18), *THREAD, seconds=2.0)
    times = (ThreadTime(7, 20, 2.0, 7.0),)
    return facts(hog, exe=exe)._replace(waits=waits, calls=expiries, threads=times)


def test_the_gil_shows_in_sums_of_waits_where_no_look_saw_it() -> None:
    finding = next(one for one in find(contended(WORD, WORD + 4)) if one.kind == "gil")
    assert finding.text == "3 threads wait for Python's GIL; rebuild (app.py:18) holds it"
    assert round(finding.cost, 2) == 0.84


def test_threads_that_wait_longer_for_a_cpu_than_for_the_gil_lose_nothing_by_it() -> None:
    def starved(queued_s: float) -> list[str]:
        measured = contended(WORD, WORD + 4)
        queues = tuple(ThreadTime(7, tid, 0.2, queued_s) for tid in (8, 9, 10))
        found = find(measured._replace(threads=(*measured.threads, *queues)))
        return [one.kind for one in found]

    assert "gil" in starved(2.0)
    assert "gil" not in starved(6.0)


def test_other_condition_variables_and_locks_are_not_the_gil() -> None:
    for measured in (
        contended(WORD),
        contended(WORD, WORD + 64),
        contended(WORD, WORD + 4, expired=10),
        contended(WORD, WORD + 4, exe="/srv/quoted"),
    ):
        assert "gil" not in [one.kind for one in find(measured)]


def test_waits_for_the_gil_are_of_the_cpu_limit_that_stops_its_holder() -> None:
    process = Process(7, 1, "app", PYTHON, cgroup="0::/shop")
    cgroup = Cgroup("/sys/fs/cgroup/shop", 0.15, periods=100, throttled=90, throttled_s=8.0)
    measured = contended(WORD, WORD + 4)._replace(processes=(process,), cgroups=(cgroup,))
    (finding,) = (one for one in find(measured) if one.kind in ("gil", "cpu-throttling"))
    assert finding.kind == "cpu-throttling"
    assert "3 threads wait for Python's GIL; rebuild (app.py:18) holds it" in finding.evidence
    seldom = measured._replace(cgroups=(cgroup._replace(throttled=20, throttled_s=0.3),))
    kinds = [one.kind for one in find(seldom) if one.kind in ("gil", "cpu-throttling")]
    assert sorted(kinds) == ["cpu-throttling", "gil"]


def ruby(name: str, line: int = 0, file: str = "shop.rb") -> StackFrame:
    return StackFrame(name, file, line, "user")


def built_in(name: str) -> StackFrame:
    return ruby(name, file="built-in")


TAKING = (native("rb_native_cond_wait", LIBRARY), native("rb_mutex_synchronize", LIBRARY))


def test_a_mutex_of_ruby_names_the_method_and_what_its_holder_does() -> None:
    inside = (built_in("synchronize"), ruby("reserve", 2), ruby("block in <main>", 3))
    waits = [waiting(7, tid, "futex", *WAIT, *TAKING, *inside) for tid in range(10, 14)]
    timed = (WAIT[0], native("pthread_cond_timedwait"), built_in("sleep"))
    holder = waiting(7, 20, "futex", *timed, ruby("block in reserve", 2), *inside)
    wakers = tuple(WakerSum(tid, "futex", 7, 20, 6.0, 100) for tid in range(10, 14))
    measured = facts(*waits, holder, exe=RUBY, wakers=wakers)
    finding = next(one for one in find(measured) if one.kind == "lock-convoy")
    assert finding.text == "4 threads wait for a lock (Mutex) of Ruby in reserve (shop.rb:2)"
    assert "its holder sleeps in block in reserve (shop.rb:2)" in finding.evidence[0]


def test_a_condition_variable_of_ruby_sleeps_for_no_time() -> None:
    stack = (built_in("sleep"), built_in("wait"), ruby("take", 5), ruby("work", 9))
    waits = [waiting(7, tid, "futex", *WAIT, *stack) for tid in range(10, 14)]
    assert [one.text for one in find(facts(*waits, exe=RUBY)) if "sleeps" in one.text] == []
