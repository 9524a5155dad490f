"""The text of a dump, golden."""

from __future__ import annotations

import pytest

from purebpf.tools.dump.model import DumpedFrame, DumpedGoroutines, DumpedThread, ProcessDump
from purebpf.tools.dump.options import parse
from purebpf.tools.dump.render import lines

FUTEX = DumpedFrame("kernel", "futex_do_wait", "kernel")
QUEUE = DumpedFrame("python", "_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", 81)


def py(name: str, line: int) -> DumpedFrame:
    return DumpedFrame("python", name, "/srv/bank.py", line)


def thread(tid: int, *frames: DumpedFrame, held_by: int = 0) -> DumpedThread:
    state = ("sleeps", "futex(0x10)", True, False, 0)
    return DumpedThread(tid, "python3", *state, (FUTEX, *frames), (), held_by)


def dump(*threads: DumpedThread) -> ProcessDump:
    return ProcessDump(5, "python3 bank.py", "3.11", False, threads, (), 0.1)


PAY, CLOSE = (py("pay", 17), py("serve", 40)), (py("close", 24), py("serve", 40))


def test_equal_threads_are_one_and_a_ring_is_a_deadlock() -> None:
    text = "".join(
        lines(
            dump(
                thread(6, QUEUE),
                thread(7, QUEUE),
                thread(8, *PAY, held_by=9),
                thread(9, *CLOSE, held_by=8),
            )
        )
    )
    assert (
        text
        == """\
PID 5: python3 bank.py
CPython 3.11
deadlock: thread 8 waits for the lock of 9, 9 waits for the lock of 8
  1 thread   waits for a lock in pay (bank.py:17) < serve (bank.py:40)
  1 thread   waits for a lock in close (bank.py:24) < serve (bank.py:40)
  2 threads  idle: wait to be woken in _worker (concurrent/futures/thread.py:81)

Thread 8 "python3": sleeps, waits for futex(0x10), held by 9
    pay (/srv/bank.py:17)
    serve (/srv/bank.py:40)

Thread 9 "python3": sleeps, waits for futex(0x10), held by 8
    close (/srv/bank.py:24)
    serve (/srv/bank.py:40)

2 threads (6, 7) "python3": sleeps, waits for futex(0x10)
    _worker (/usr/lib/python3.11/concurrent/futures/thread.py:81)
"""
    )


def test_verbose_has_each_thread_and_the_kernel() -> None:
    text = "".join(lines(dump(thread(6, QUEUE), thread(7, QUEUE)), verbose=True))
    assert text.count("futex_do_wait [kernel]") == 2
    assert "Thread 7 " in text


def test_threads_that_wait_in_a_row_are_no_deadlock() -> None:
    text = "".join(lines(dump(thread(8, *PAY, held_by=9), thread(9, *CLOSE, held_by=10))))
    assert "deadlock" not in text


def test_a_thread_without_user_frames_keeps_those_of_the_kernel() -> None:
    assert "futex_do_wait [kernel]" in "".join(lines(dump(thread(6))))


def test_the_process_may_be_given_by_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["-p", "185"]).pids == parse(["185"]).pids == (185,)
    for wrong in ([], ["185", "-p", "185"]):
        with pytest.raises(SystemExit):
            parse(wrong)
    assert "purebpf dump PID" in capsys.readouterr().err


def goroutines(number: int, *names: str) -> DumpedGoroutines:
    frames = tuple(DumpedFrame("user", name, "/srv/billing") for name in names)
    return DumpedGoroutines(number, frames)


def test_goroutines_stand_between_the_threads_and_their_stacks() -> None:
    handler = ("main.post", "net/http.HandlerFunc.ServeHTTP", "runtime.goexit.abi0")
    groups = (
        goroutines(5, "runtime.gopark", "sync.(*Mutex).lockSlow", *handler),
        goroutines(1, "runtime.gopark", "runtime.chansend", *handler),
        goroutines(2, "runtime.gopark", "runtime.chanrecv", "main.work", "runtime.goexit.abi0"),
        goroutines(1, "runtime.gopark", "time.Sleep", "main.main", "runtime.goexit.abi0"),
        goroutines(4, "runtime.gopark", "runtime.bgsweep", "runtime.goexit.abi0"),
    )
    text = "".join(lines(dump()._replace(python="", goroutines=groups)))
    assert text.startswith(
        """\
PID 5: python3 bank.py
  5 goroutines wait for a lock in main.post
  1 goroutine waits to send to a channel in main.post
  2 goroutines idle: wait to receive from a channel in main.work
  1 goroutine idle: sleeps in main.main
  4 goroutines of Go's runtime and libraries

5 goroutines:
    runtime.gopark (billing)
    sync.(*Mutex).lockSlow (billing)
    main.post (billing)
"""
    )
