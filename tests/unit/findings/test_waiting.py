"""Idle or work, by the stacks of a wait."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import StackFrame
from purebpf.findings.ownership import Program
from purebpf.findings.waiting import Judgement, Side, are_deeper_than_home, judge
from tests.support.builders.facts import (
    KERNEL,
    LOCKING,
    PYTHON,
    THREAD,
    library,
    native,
    own,
)

PROGRAM = Program(PYTHON)
LOOP = (library("Handle._run", "/usr/lib/python3.11/asyncio/events.py"),)


def of(call: str, *user: StackFrame, **more: object) -> Judgement:
    return judge(PROGRAM, KERNEL[call], user, **more)  # type: ignore[arg-type]


def test_a_lock_of_own_code_is_work_and_a_queue_is_idle() -> None:
    lock = of("futex", *LOCKING, own("reserve"), *THREAD)
    assert (lock.kind, lock.is_work) == ("lock", True)
    queue = of("futex", *LOCKING, library("Queue.get"), own("serve"), *THREAD)
    assert (queue.kind, queue.is_work) == ("cond", False)


def test_a_queue_below_a_framework_is_work() -> None:
    handler = of("futex", *LOCKING, library("Queue.put"), own("store"), library("Flask.dispatch"))
    assert (handler.kind, handler.is_work, handler.is_called) == ("queue-full", True, True)


@pytest.mark.parametrize(("outer", "is_work"), [(THREAD, False), (LOOP, True)])
def test_a_sleep_is_work_where_a_loop_called_it(
    outer: tuple[StackFrame, ...], is_work: bool
) -> None:
    sleep = of("clock_nanosleep", own("throttle"), *outer)
    assert (sleep.kind, sleep.is_work) == ("sleep", is_work)


@pytest.mark.parametrize(
    ("side", "is_work"), [(Side.CLIENT, True), (Side.SERVER, False), (Side.UNKNOWN, False)]
)
def test_the_side_of_a_connection_decides(side: Side, is_work: bool) -> None:
    assert of("recvfrom", own("talk"), *THREAD, side=side).is_work is is_work


def test_kinds_that_nobody_waits_for_by_choice_are_work() -> None:
    for call in ("write", "fsync"):
        assert of(call, native("write")).is_work


@pytest.mark.parametrize("name", ["fuse_dev_do_read", "fanotify_read", "inotify_read"])
def test_a_daemon_that_waits_for_the_next_request_of_the_kernel_is_idle(name: str) -> None:
    daemon = judge(PROGRAM, (name, "vfs_read"), (native("read"), native("serve", "/srv/sharefs")))
    assert (daemon.kind, daemon.is_work) == ("request", False)
    client = judge(PROGRAM, ("request_wait_answer", "fuse_lookup"), (native("open"),))
    assert (client.kind, client.is_work) == ("remote-file", True)


@pytest.mark.parametrize(
    ("exe", "is_work"), [("/usr/sbin/php-fpm8.2", True), ("/usr/bin/php8.2", False)]
)
def test_a_script_of_php_fpm_runs_in_a_request(exe: str, *, is_work: bool) -> None:
    stack = (
        native("__poll"),
        native("stream_get_contents", "built-in"),
        native("ask", "/srv/a.php"),
    )
    for kernel in (("do_poll", "do_sys_poll"), KERNEL["clock_nanosleep"], KERNEL["recvfrom"]):
        assert judge(Program(exe), kernel, stack).is_work is is_work
    between = (native("__libc_accept"), native("fcgi_accept_request", exe))
    assert not judge(Program(exe), ("inet_csk_accept",), between).is_work


def test_an_idle_loop_is_idle() -> None:
    assert not of("epoll_wait", native("epoll_wait"), own("main")).is_work


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pthread_mutex_lock", "lock"),
        ("___pthread_mutex_lock", "lock"),
        ("__pthread_mutex_cond_lock", "lock"),
        ("pthread_rwlock_rdlock", "lock"),
        ("pthread_cond_wait", "cond"),
        ("__pthread_clockjoin_ex", "join"),
        ("runtime.futexsleep", "go-park"),
        ("ObjectMonitor::enter(JavaThread*)", "jvm-monitor"),
        ("Unsafe_Park", "java-park"),
    ],
)
def test_futexes_are_told_apart_by_who_called(name: str, kind: str) -> None:
    stack = (native("futex_wait"), native(name), native("work", "/srv/app"))
    assert judge(Program("/srv/app"), KERNEL["futex"], stack).kind == kind


def test_a_wait_below_the_home_of_its_thread_is_work() -> None:
    home = Judgement("sleep", False, False, 1)
    deeper = Judgement("sleep", False, False, 3)
    waits = [(home, 5.0, 50, Side.UNKNOWN), (deeper, 4.0, 40, Side.UNKNOWN)]
    assert are_deeper_than_home(waits, 0.2) == [False, True]
    assert are_deeper_than_home(waits[:1], 0.2) == [False]


SERVER = "/srv/server"


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        (
            (native("std::sync::mpmc::array::Channel<T>::send"), native("feed", SERVER)),
            "queue-full",
        ),
        ((native("pthread_cond_wait"), native("Jobs::push(int)", SERVER)), "queue-full"),
        ((native("pthread_cond_wait"), native("Pool::acquire()", SERVER)), "permit"),
        (
            (
                native("syscall"),
                native(
                    "void std::__atomic_wait_address_bare<std::__atomic_semaphore::_M_acquire()::"
                    "{lambda()#1}>(int const*)",
                    SERVER,
                ),
                native("render(long)", SERVER),
            ),
            "permit",
        ),
        ((native("pthread_cond_wait"), native("Jobs::take()", SERVER)), "cond"),
        (
            (
                native("pthread_cond_wait"),
                native("Pool<Codec>::take()", SERVER),
                native("thumbnail()", SERVER),
            ),
            "permit",
        ),
        (
            (
                native("pthread_cond_wait"),
                native("Pool<Job>::take()", SERVER),
                native("Encoder::run()", SERVER),
            ),
            "cond",
        ),
        (
            (
                native("pthread_cond_wait"),
                native("ThreadPool::take()", SERVER),
                native("encode(long)", SERVER),
            ),
            "cond",
        ),
        ((native("pthread_cond_wait"), native("run", SERVER), native("push", SERVER)), "cond"),
        (
            (
                native("pthread_cond_wait"),
                native("rb_mutex_synchronize"),
                native("rb_vm_exec"),
            ),
            "ruby-mutex",
        ),
        (
            (
                native("pthread_cond_wait"),
                native("rb_native_cond_wait"),
                native("rb_mutex_lock"),
                native("synchronize", "built-in"),
                native("pay", "/srv/shop.rb"),
            ),
            "ruby-mutex",
        ),
        (
            (
                native("pthread_cond_wait"),
                native("rb_native_cond_wait"),
                native("rb_mutex_sleep"),
                native("sleep", "built-in"),
                native("wait", "built-in"),
                native("take_job", "/srv/shop.rb"),
            ),
            "cond",
        ),
        (
            (
                native("pthread_cond_wait"),
                native("rb_native_cond_wait"),
                native("rb_mutex_sleep"),
                native("wait", "built-in"),
                native("block in with_connection", "/srv/shop.rb"),
            ),
            "permit",
        ),
        (
            (
                native("pthread_cond_wait"),
                native("rb_mutex_lock"),
                native("rb_mutex_sleep"),
                native("wait", "built-in"),
                native("take_job", "/srv/shop.rb"),
            ),
            "ruby-mutex",
        ),
        (
            (
                native("pthread_cond_wait"),
                native("rb_native_cond_wait"),
                native("rb_nogvl"),
                native("read", "built-in"),
                native("pay", "/srv/shop.rb"),
            ),
            "ruby-gvl",
        ),
        (
            (
                native("pthread_cond_timedwait"),
                native("rb_vm_exec"),
                native("rb_mutex_synchronize"),
            ),
            "cond",
        ),
    ],
)
def test_a_condition_is_named_by_the_function_that_waits(
    user: tuple[StackFrame, ...], kind: str
) -> None:
    judged = judge(Program(SERVER), KERNEL["futex"], user)
    assert (judged.kind, judged.is_work) == (kind, kind != "cond")


SQLITE, TIMER = (
    "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
    "/usr/lib/x86_64-linux-gnu/libtimer.so.1",
)
POLLING = (
    native("clock_nanosleep"),
    native("usleep"),
    native("libsqlite3.so.0!0xaa150", SQLITE),
    native("sqlite3InvokeBusyHandler", SQLITE),
    native("_sqlite3.so!0xbc50", "/usr/lib/python3.11/lib-dynload/_sqlite3.so"),
)


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ((*POLLING, own("store")), "nap"),
        ((*POLLING, native("run", SERVER)), "nap"),
        ((native("clock_nanosleep"), native("HiRes_usleep", TIMER), own("tick")), "sleep"),
        ((native("clock_nanosleep"), native("wait_a_bit", TIMER), own("tick")), "sleep"),
        ((native("clock_nanosleep"), own("tick")), "sleep"),
        ((*POLLING, native("start_thread"), native("clone3")), "sleep"),
    ],
    ids=["Python", "C", "a sleep of a library", "one call of it", "plain", "its own thread"],
)
def test_a_library_that_polls_is_not_at_rest(user: tuple[StackFrame, ...], kind: str) -> None:
    judged = judge(PROGRAM, KERNEL["clock_nanosleep"], user)
    assert (judged.kind, judged.is_work) == (kind, kind == "nap")


def test_a_condition_below_a_loop_blocks_the_loop() -> None:
    node = Program("/usr/bin/node")
    waits = (native("pthread_cond_wait"), native("v8::internal::Builtin_AtomicsWait", node.exe))
    loop = (native("uv__io_poll", node.exe), native("uv_run", node.exe))
    assert judge(node, KERNEL["futex"], (*waits, *loop)).kind == "nested-loop"
    worker = native("node::PlatformWorkerThread", node.exe)
    assert judge(node, KERNEL["futex"], (native("pthread_cond_wait"), worker)).kind == "cond"
