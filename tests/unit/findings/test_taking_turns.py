"""Waits inside of a program or a pipeline: semaphores, results, pipes, accept queues."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import (
    Activity,
    Endpoint,
    Facts,
    Process,
    Socket,
    StackFrame,
    ThreadTime,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import facts, native, own, running, waiting

CPP, PHP, TAR = "/srv/quoted", "/usr/bin/php8.2", "/usr/bin/tar"
IN_SEMOP = ("__do_semtimedop", "do_semtimedop", "do_syscall_64")
IN_ACCEPT = ("inet_csk_accept", "inet_accept", "__sys_accept4")
FUTURE = native("std::__atomic_futex_unsigned_base::_M_futex_wait_until(unsigned int*)", CPP)
STARTED = native("start_thread")


def faults(measured: Facts) -> list[Finding]:
    return [finding for finding in find(measured) if not finding.is_busy]


def texts(measured: Facts) -> list[str]:
    return ["; ".join((one.text, *one.evidence)) for one in faults(measured)]


# A System V semaphore


def queueing(giver: int = 0, meanwhile: tuple[str, ...] = ()) -> Facts:
    """Three processes, each of which waits 8 of 10 seconds for a semaphore, as PHP does.

    `giver` wakes them; 0: they wake each other.
    """
    stays, wakers = list[Activity](), list[WakerSum]()
    for pid in (11, 12, 13):
        code = (native("__semtimedop"), native("execute_ex", PHP))
        wait = waiting(pid, pid, "futex", *code, seconds=8.0, argument=3)
        stays.append(wait._replace(kernel=IN_SEMOP, call="semtimedop"))
        slept = waiting(pid, pid, "clock_nanosleep", native("usleep"), seconds=2.0)
        if meanwhile:
            slept = slept._replace(kernel=meanwhile, call="accept4", argument=4)
        stays.append(slept)
        waker = giver or 11 + (pid - 10) % 3
        wakers.append(WakerSum(pid, "semtimedop", waker, waker, 8.0, 60))
    processes = tuple(Process(pid, 1, "php", PHP, "php tickets.php") for pid in (11, 12, 13))
    return facts(*stays, processes=processes, wakers=tuple(wakers))


def test_processes_that_take_turns_for_a_semaphore() -> None:
    (finding,) = faults(queueing())
    assert finding.kind == "lock-convoy"
    assert "3 threads wait for a System V semaphore" in finding.text
    assert "who has it sleeps" in finding.evidence[0]


@pytest.mark.parametrize(
    "well",
    [queueing(giver=40), queueing(meanwhile=IN_ACCEPT)],
    ids=["another program has work for them", "they take it to accept"],
)
def test_semaphores_of_idle_workers(well: Facts) -> None:
    assert texts(well) == []


def sharing(giver: int = 0, taker: str = "take_license") -> Facts:
    """Processes that wait for a POSIX semaphore in shared memory, as `queueing`."""
    named = "__new_sem_wait_slow64.constprop.0"
    measured = queueing(giver)
    code = (native(named), native(taker, CPP), native("main", CPP))
    stays = [
        one if one.call != "semtimedop" else waiting(
            one.pid, one.pid, "futex", *code, seconds=8.0, argument=0x1000 * one.pid
        )
        for one in measured.activities
    ]  # fmt: skip
    processes = tuple(one._replace(comm="quoted", exe=CPP) for one in measured.processes)
    wakers = tuple(one._replace(call="futex") for one in measured.wakers)
    return measured._replace(activities=tuple(stays), processes=processes, wakers=wakers)


def test_processes_that_take_turns_for_a_posix_semaphore() -> None:
    (finding,) = faults(sharing())
    assert finding.kind == "lock-convoy"
    assert "POSIX semaphore (sem_wait) in take_license that they give" in finding.text
    assert "who has it sleeps" in finding.evidence[0]
    assert texts(sharing(giver=40)) == []
    assert texts(sharing(taker="PGSemaphoreLock")) == []


def test_workers_of_a_python_queue_use_semaphores_too() -> None:
    """Idle threads that wait in `Queue.get`, and wake each other as they give the queue back."""
    threading = "/usr/lib/python3.11/threading.py"
    named = "__new_sem_wait_slow64.constprop.0"

    def waiting_in(*inside: StackFrame) -> Facts:
        stays = [
            waiting(7, tid, "futex", native(named), *inside, own("work"), seconds=8.0)
            for tid in (11, 12, 13)
        ]
        runs = [running(7, tid, own("work"), seconds=1.0) for tid in (11, 12, 13)]
        wakers = tuple(
            WakerSum(tid, "futex", 7, other, 8.0, 90)
            for tid, other in ((11, 12), (12, 13), (13, 11))
        )
        return facts(*stays, *runs, wakers=wakers)

    get = (
        StackFrame("Condition.wait", threading, 5, "python"),
        StackFrame("Queue.get", "/usr/lib/python3.11/queue.py", 5, "python"),
    )
    assert not any("semaphore" in text for text in texts(waiting_in(*get)))


# A result of a pool


def asking(threads: int = 3, **more: object) -> Facts:
    """Threads that wait for futures, and the worker that sleeps for each of them."""
    waits = [
        waiting(7, tid, "futex", FUTURE, native("draw_page(Pool&)", CPP), STARTED, **more)
        for tid in range(20, 20 + threads)
    ]
    worker = waiting(7, 9, "clock_nanosleep", native("draw_tile()", CPP), STARTED)
    wakers = tuple(WakerSum(one.tid, "futex", 7, 9, 9.0, 60) for one in waits)
    return facts(*waits, worker, exe=CPP, wakers=wakers)


def test_threads_that_wait_for_results_of_one_worker() -> None:
    (text,) = texts(asking())
    assert "3 threads wait for a result in draw_page" in text
    assert "who wakes them sleeps in draw_tile" in text


def test_threads_of_a_pool_that_all_wait_for_results() -> None:
    stuck = asking(is_open=True, seconds=10.0)
    pool = [
        one._replace(comm=f"pool-1-thread-{one.tid}")
        for one in stuck.activities
        if one.call == "futex"
    ]
    (text,) = texts(stuck._replace(activities=tuple(pool)))
    assert 'these are all threads "pool-1-thread-", and none got a result' in text
    python = StackFrame("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", 8, "python")
    workers = [one._replace(user=(*one.user, python), comm="app7") for one in pool]
    (text,) = texts(stuck._replace(activities=tuple(workers)))
    assert "these are all threads of a Python executor, and none got a result" in text
    idle = pool[0]._replace(tid=30, user=(STARTED,), comm="pool-1-thread-30")
    assert texts(stuck._replace(activities=(*pool, idle))) == []


@pytest.mark.parametrize(
    "well",
    [asking(threads=1), asking(is_open=True, seconds=10.0)],
    ids=["its own pool", "for ever"],
)
def test_results_that_a_main_program_waits_for(well: Facts) -> None:
    assert texts(well) == []


# A pipeline


def feeding(reader: Activity) -> Facts:
    """A stage of a pipeline that waits for the next one."""
    pipe = Endpoint("pipe", inode=77)
    return facts(
        *(waiting(7, 7, "write", native("write"), argument=1), reader),
        exe=TAR,
        waits=(WaitSum(7, 7, "write", 1, 1, 0, pipe, 9.0, 900, 0.1),),
        descriptors={7: {1: "pipe:[77]"}, 8: {0: "pipe:[77]"}},
    )


def test_a_stage_of_a_pipeline_whose_next_stage_sleeps() -> None:
    slow = waiting(8, 8, "clock_nanosleep", native("nanosleep"), native("main", TAR))
    (finding,) = faults(feeding(slow))
    assert finding.kind == "full-pipe"


def test_a_pipeline_whose_next_stage_computes_is_at_work() -> None:
    assert texts(feeding(running(8, 8, native("deflate", TAR), seconds=9.0))) == []


# Accept queues


def test_an_accept_queue_says_what_its_server_does() -> None:
    server = waiting(7, 7, "clock_nanosleep", own("serve_one", 9), own("main", 20))
    measured = facts(
        server,
        sockets=(Socket(55, "tcp", "0.0.0.0", 80, "", 0, 10, 3.0),),
        descriptors={7: {3: "socket:[55]"}},
    )
    (text,) = texts(measured)
    assert (
        "3.0 connections wait to be accepted on port 80; meanwhile it sleeps in serve_one" in text
    )
    saving = running(7, 7, native("rdbSave", CPP), native("main", CPP), seconds=0.5)
    busy = measured._replace(
        activities=(saving,), processes=(Process(7, 1, "redis", CPP),), threads=()
    )
    (text,) = texts(busy)
    assert "meanwhile it runs in rdbSave 100 %" in text


# Stacks that were cut


def test_stacks_of_one_frame_say_nothing_beside_whole_ones() -> None:
    postgres = "/usr/lib/postgresql/15/bin/postgres"
    leaf, scan = native("HeapTupleSatisfies", postgres), native("ExecScan", postgres)
    cut = running(7, 7, leaf, seconds=6.0)
    whole = running(7, 7, leaf, scan, native("main", postgres), seconds=3.0)
    (finding,) = find(facts(cut, whole, exe=postgres))
    assert "ExecScan" in "; ".join((finding.text, *finding.evidence))
    (alone,) = find(facts(cut, exe=postgres))
    assert "HeapTupleSatisfies 100 %" in alone.text


def test_a_named_pipe_whose_reader_is_slow() -> None:
    code = (native("write"), native("publish", "/srv/feed"), native("main", "/srv/feed"))
    writer = waiting(7, 7, "write", *code, argument=3)
    slow = (native("usleep"), native("archive", "/srv/archive"))
    reader = waiting(9, 9, "clock_nanosleep", *slow)
    processes = (Process(7, 1, "feed", "/srv/feed"), Process(9, 1, "archive", "/srv/archive"))
    fifo = {7: {3: "/run/quotes"}, 9: {4: "/run/quotes"}, 11: {3: "/run/other"}}
    (finding,) = faults(facts(writer, reader, processes=processes, descriptors=fifo))
    assert finding.text == "blocks in pipe_write of publish: fd 3 is full (/run/quotes)"
    assert finding.evidence[0] == "read by archive (9), which sleeps in archive"


@pytest.mark.parametrize("kernel", ["do_mq_timedsend", "do_msgsnd"])
def test_a_full_message_queue_and_who_empties_it(kernel: str) -> None:
    code = (native("mq_timedsend"), native("send_reading", "/srv/meter"))
    sender = waiting(7, 7, "futex", *code)._replace(kernel=("wq_sleep", kernel), call="mq_send")
    reader = waiting(9, 9, "clock_nanosleep", native("bill", "/srv/bill"))
    measured = facts(
        sender,
        reader,
        processes=(Process(7, 1, "meter", "/srv/meter"), Process(9, 1, "bill", "/srv/bill")),
        wakers=(WakerSum(7, "mq_send", 9, 9, 9.0, 200),),
        threads=(ThreadTime(9, 9, 0.1, 0.0),),
    )
    (finding,) = faults(measured)
    assert "1 thread waits for room in a full queue in send_reading" in finding.text
    assert finding.evidence[0].startswith("who wakes them is bill (9), which sleeps in bill")
    taker = sender._replace(kernel=("wq_sleep", "do_mq_timedreceive"))
    assert texts(measured._replace(activities=(taker, reader))) == []
    unread = sender._replace(user=())
    (finding,) = faults(measured._replace(activities=(unread, reader)))
    assert finding.text == "1 thread waits for room in a full queue in mq_send"
