"""Locks of interpreters: Ruby's global lock."""

from __future__ import annotations

from purebpf.findings.facts import Facts, ThreadTime
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, running, waiting

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
