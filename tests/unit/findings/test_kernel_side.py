"""Crashes, limits of the kernel, signals, and waits that nobody asks for, and healthy twins."""

from __future__ import annotations

import errno
import signal
import time

import pytest

from purebpf.findings.facts import (
    Activity,
    CallCount,
    End,
    Endpoint,
    Facts,
    PathCount,
    Process,
    SignalCount,
    Socket,
    StackFrame,
    Start,
    ThreadTime,
    Unanswered,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import native, running, waiting

EXE = "/srv/relayd"
PORT = 8080
LISTENER = Socket(51, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10)
CONNECTED = Socket(52, "tcp", "127.0.0.1", PORT, "127.0.0.1", 40001, 1)
SHELL = Process(5, 1, "sh", "/usr/bin/dash", command="sh keep.sh")
SERVER = Process(7, 5, "relayd", EXE, command="relayd 8080")
STOPPED = ("do_signal_stop", "get_signal", "arch_do_signal_or_restart")


def texts(measured: Facts) -> list[str]:
    return ["; ".join((one.text, *one.evidence)) for one in find(measured) if not one.is_busy]


def own(name: str) -> StackFrame:
    return StackFrame(name, EXE)


def server(*activities: Activity, **more: object) -> Facts:
    values = {
        "sockets": (LISTENER, CONNECTED),
        "descriptors": {7: {3: "socket:[51]", 4: "socket:[52]"}},
        "processes": (SHELL, SERVER),
        **more,
    }
    return Facts(10.0, 2, activities=activities, **values)  # type: ignore[arg-type]


def in_kernel(
    call: str, kernel: tuple[str, ...], *user: StackFrame, seconds: float = 9.0
) -> Activity:
    return Activity(7, 7, "relayd", "wait", "S", seconds, kernel, user, call, 5)


# Crashes


def ending(code: int, times: int, comm: str = "relayd") -> Facts:
    starts = (Start(5, "sh", comm, is_fork=False, times=20),)
    return server(ends=(End(5, "sh", comm, code, times),), starts=starts)


def test_a_program_that_crashes_again_and_again_is_named_with_its_parent() -> None:
    (text,) = texts(ending(signal.SIGSEGV, 19))
    assert "crashes (SIGSEGV, an access to memory that is not there) 1.9 times a second" in text
    assert "sh (5), keep.sh, starts it again" in text
    (text,) = texts(ending(signal.SIGSEGV | 0x80, 19))  # with a core dump
    assert "crashes (SIGSEGV" in text
    (text,) = texts(ending(2 << 8, 19))
    assert "ends with an error (status 2) 1.9 times a second" in text


def test_ends_that_are_no_crashes() -> None:
    assert texts(ending(signal.SIGSEGV, 2)) == []
    assert texts(ending(1 << 8, 5)) == []  # a quarter of them fails
    assert texts(ending(1 << 8, 19, comm="grep")) == []
    assert texts(ending(1 << 8, 19, comm="readlink")) == []
    assert texts(ending(signal.SIGTERM, 19)) == []


def test_killed_programs_are_restarted_only_by_a_parent_that_lives() -> None:
    killed = ending(signal.SIGKILL, 19)
    assert "is killed (SIGKILL) 1.9 times a second" in texts(killed)[0]
    assert texts(killed._replace(processes=(SERVER,))) == []


def test_other_processes_of_the_name_are_not_the_ones_that_crash() -> None:
    other = SERVER._replace(pid=8, ppid=1)
    (finding,) = find(ending(signal.SIGSEGV, 19)._replace(processes=(SHELL, SERVER, other)))
    assert finding.pids == (7, 5)


# Signals


def stopping(times: int) -> Facts:
    sent = (SignalCount(5, 7, signal.SIGSTOP, times), SignalCount(5, 7, signal.SIGCONT, times))
    return server(in_kernel("read", STOPPED, own("serve"), seconds=6.0), signals=sent)


def test_a_program_that_is_stopped_again_and_again_is_named_with_who_does_it() -> None:
    (text,) = texts(stopping(20))
    assert "is stopped 2.0 times a second by sh (5) (SIGSTOP, SIGCONT), 60 % of the time" in text
    assert "its command: sh keep.sh" in text
    assert texts(stopping(1)) == []


def test_signals_of_descriptors_are_of_no_timer() -> None:
    feed = Process(9, 1, "feed", "/srv/feed")
    sent = (SignalCount(9, 7, signal.SIGIO, 90_000), SignalCount(7, 7, signal.SIGIO, 9_000))
    (text,) = texts(server(signals=sent, processes=(SERVER, feed)))
    assert "gets 9900 signals a second (SIGIO): a descriptor has O_ASYNC" in text
    assert "feed (9) sends most data" in text


# Queues of connections


def queued(*activities: Activity) -> Facts:
    full, other = LISTENER._replace(queue=20.0), LISTENER._replace(inode=61)
    return server(
        *activities,
        sockets=(full, other),
        descriptors={7: {3: "socket:[51]"}, 8: {3: "socket:[61]"}},
        processes=(SERVER, Process(8, 5, "relayd", EXE, command="relayd 8080 --new")),
        calls=(CallCount(8, "accept4", 0, 200),),
    )


def test_an_old_listener_of_a_shared_port_accepts_nothing() -> None:
    waits = in_kernel("rt_sigsuspend", ("sigsuspend",), native("sigsuspend"), own("drain"))
    (text,) = texts(queued(waits))
    assert "accepts nothing: 20.0 connections wait to be accepted on port 8080" in text
    assert "meanwhile it waits for a signal in drain" in text
    assert "relayd (8) also listens on it (SO_REUSEPORT)" in text


# Limits and permissions


def failing(call: str, error: int, failed: int, worked: int = 0, path: str = "/srv/a") -> Facts:
    calls = (CallCount(7, call, error, failed), CallCount(7, call, 0, worked))
    return server(calls=calls, paths=(PathCount(7, call, path, failed),))


@pytest.mark.parametrize(
    ("call", "error", "meaning"),
    [
        ("inotify_add_watch", errno.ENOSPC, "fs.inotify.max_user_watches"),
        ("inotify_init1", errno.EMFILE, "fs.inotify.max_user_instances"),
        ("mmap", errno.ENOMEM, "vm.max_map_count"),
        ("write", errno.ENOSPC, "no space left on the device"),
        ("bind", errno.EADDRINUSE, "somebody else has that port or address"),
        ("sendto", errno.EMSGSIZE, "the message is too large for a datagram"),
        ("openat", errno.EACCES, "no permission"),
        ("write", errno.EBADF, "the descriptor is not open"),
    ],
)
def test_an_error_says_the_limit_that_the_call_meets(call: str, error: int, meaning: str) -> None:
    (text,) = texts(failing(call, error, 90))
    assert f"{call} fails with {errno.errorcode[error]} ({meaning}" in text.replace(
        "the limit of watches: ", ""
    ).replace("the limit of instances: ", "").replace("no memory, or the limit of mappings (", "")


def test_answers_that_are_no_errors() -> None:
    assert texts(failing("openat", errno.EACCES, 90, 900)) == []  # it looks where it may
    assert texts(failing("openat", errno.EACCES, 90, path="/proc/1/fd")) == []
    assert texts(failing("close", errno.EBADF, 90)) == []
    assert texts(failing("connect", errno.EACCES, 2)) == []


# Waits in the kernel


def test_a_close_that_lingers_is_named() -> None:
    kernel = ("wait_woken", "sk_stream_wait_close", "__tcp_close", "tcp_close", "inet_release")
    (text,) = texts(server(in_kernel("close", kernel, native("close"), own("finish"))))
    assert "1 thread waits in close, which is not expected to wait (sk_stream_wait_close)" in text
    assert "in finish; the peer has not taken all data yet, and SO_LINGER" in text


@pytest.mark.parametrize(
    ("call", "kernel", "said"),
    [
        (
            "rename",
            ("rwsem_down_write_slowpath", "down_write", "do_renameat2"),
            "for a lock in the kernel, in rename (do_renameat2), in finish; the lock of a folder",
        ),
        (
            "mmap",
            ("rwsem_down_write_slowpath", "down_write_killable", "vm_mmap_pgoff"),
            "threads of one process change or extend its memory map",
        ),
        ("openat", ("request_wait_answer", "__fuse_simple_request"), "a FUSE program, in openat"),
        ("read", ("reclaim_throttle", "shrink_node"), "until the kernel finds free memory"),
    ],
)
def test_waits_in_the_kernel(call: str, kernel: tuple[str, ...], said: str) -> None:
    (text,) = texts(server(in_kernel(call, kernel, own("finish"))))
    assert said in text


FUSE = ("request_wait_answer", "__fuse_simple_request", "fuse_lookup", "lookup_open", "path_openat")
SCANNED = ("fanotify_handle_event", "fsnotify", "do_dentry_open", "path_openat")


@pytest.mark.parametrize("kernel", [FUSE, SCANNED])
def test_waits_for_a_file_server_or_a_scanner_name_the_file_and_who_ends_them(
    kernel: tuple[str, ...],
) -> None:
    wait = WaitSum(7, 7, "openat", 0, -1, 0, Endpoint(), 9.0, 90, 0.1)
    daemon = Process(9, 1, "shared", "/srv/shared")
    measured = server(
        in_kernel("openat", kernel, own("load_prices")),
        processes=(SHELL, SERVER, daemon),
        paths=(PathCount(7, "openat", "/mnt/share/prices.csv", 80), PathCount(7, "stat", "/a", 9)),
        waits=(wait,),
        wakers=(WakerSum(7, "openat", 9, 9, 9.0, 90),),
        threads=(ThreadTime(9, 9, 0.1, 0.0),),
    )
    (text,) = texts(measured)
    assert "of /mnt/share/prices.csv; shared (9) ends 100 % of these waits" in text
    assert "the lock of a folder" not in text
    assert ("a virus scanner" in text) == (kernel is SCANNED)


def test_a_long_path_of_a_share_loses_its_start() -> None:
    path = f"/mnt/{'x' * 40}/share/prices.csv"
    paths = (PathCount(7, "openat", path, 80),)
    (text,) = texts(server(in_kernel("openat", FUSE, own("load")), paths=paths))
    assert "of .../share/prices.csv" in text


def test_waits_for_a_lock_of_the_kernel_are_about_no_file_of_a_share() -> None:
    kernel = ("rwsem_down_write_slowpath", "down_write", "do_unlinkat")
    paths = (PathCount(7, "openat", "/mnt/share/prices.csv", 80),)
    (text,) = texts(server(in_kernel("unlink", kernel, own("finish")), paths=paths))
    assert "the lock of a folder" in text
    assert "prices.csv" not in text


def test_calls_that_may_wait_are_no_incident() -> None:
    assert texts(server(in_kernel("io_getevents", ("read_events",), own("finish")))) == []
    assert texts(server(in_kernel("close", ("synchronize_rcu",), own("finish"), seconds=0.2))) == []


def test_waits_that_no_look_read_have_the_stack_of_others_in_that_call() -> None:
    read = waiting(7, 8, "write", own("log_line"), seconds=4.0)
    unread = [waiting(7, tid, "write", seconds=8.0, argument=tid) for tid in (9, 10)]
    (text,) = texts(server(read, *unread))
    assert "blocks in pipe_write of log_line" in text
    other = waiting(7, 11, "write", own("send_item"), seconds=4.0)
    assert "of log_line" not in "".join(texts(server(other, read, *unread))[:1])


def test_a_synced_write_says_who_uses_the_disk() -> None:
    copying = SHELL._replace(written_bytes=2_000_000_000)
    wait = waiting(7, 7, "fsync", own("store"), seconds=4.0)
    starts = (Start(5, "sh", "cp", is_fork=False, times=9),)
    measured = server(wait, processes=(copying, SERVER), starts=starts)
    assert "the disk is used by sh (5) 200 MB/s (cp)" in texts(measured)[0]
    assert "the disk is used" not in texts(server(wait))[0]


# CPU time


def computing(*user: StackFrame, opened: int = 100) -> Facts:
    return server(
        running(7, 7, *user),
        threads=(ThreadTime(7, 7, 5.0, 0.0),),
        paths=(PathCount(7, "openat", "/etc/hosts", opened),),
    )


def test_cpu_time_in_a_function_of_the_c_library_is_named() -> None:
    inside = native("_nss_files_gethostbyname4_r"), native("getaddrinfo")
    (text,) = texts(computing(*inside, own("locate"), own("main")))
    assert "uses 0.50 CPUs: locate 100 %, in getaddrinfo (reads /etc/hosts)" in text
    (text,) = texts(computing(native("regexec"), own("locate"), own("main")))
    assert "locate 100 %, in regexec" in text
    assert "(reads" not in text
    (text,) = texts(computing(native("_int_malloc"), own("locate"), own("main")))
    assert "in _int_malloc" not in text
    (text,) = texts(computing(*inside, own("locate"), own("main"), opened=3))
    assert "/etc/hosts" not in text


def test_an_interpreter_without_names_says_its_script() -> None:
    script = Process(7, 5, "luajit", "/usr/bin/luajit", command="luajit -O2 /srv/rank.lua 9")
    measured = computing(native("lj_str_new", "/usr/bin/luajit"))._replace(processes=(script,))
    (text,) = texts(measured)
    assert "uses 0.50 CPUs in rank.lua" in text


# Turns


def test_threads_that_take_turns_for_an_eventfd_hold_requests() -> None:
    kernel = ("eventfd_read", "vfs_read", "ksys_read")
    frames = native("read"), own("obtain"), own("scan"), own("serve")
    waits = [
        Activity(7, tid, "relayd", "wait", "S", 9.0, kernel, frames, "read", 5, times=80)
        for tid in (7, 8, 9)
    ]
    sums = tuple(
        WaitSum(7, tid, "read", 5, 5, 0, Endpoint("file"), 9.0, 80, 0.2) for tid in (7, 8, 9)
    )
    held = (Unanswered(52, 3.0, 0.4, "127.0.0.1", 40001, PORT),)
    (text,) = texts(server(*waits, waits=sums, held=held))
    assert "3 threads wait: each waits for a semaphore in obtain" in text
    idle = [one._replace(user=(native("read"), own("next_job"), own("serve"))) for one in waits]
    assert "each waits" not in texts(server(*idle, waits=sums, held=held))[0]


def test_connections_that_wait_to_be_accepted_are_no_full_sockets() -> None:
    kernel = ("unix_wait_for_peer", "unix_stream_connect", "__sys_connect")
    (text,) = texts(server(in_kernel("connect", kernel, native("connect"), own("sign"))))
    assert "in sign" in text
    assert "is full" not in text


def test_nscd_is_asked_by_programs_that_start() -> None:
    asked = (CallCount(7, "connect", errno.ENOENT, 16),)
    assert "the unix socket of the server is not there" in texts(server(calls=asked))[0]
    new = SERVER._replace(is_new=True)
    assert texts(server(calls=asked, processes=(SHELL, new))) == []


def test_a_lock_is_given_by_a_process_with_another_name() -> None:
    writer = Process(8, 5, "publish", EXE)
    lock = native("pthread_rwlock_rdlock"), own("lookup")
    waits = [waiting(pid, pid, "futex", *lock, seconds=9.0) for pid in (7, 9)]
    sleep = waiting(8, 8, "clock_nanosleep", own("archive"), own("publish"), seconds=9.0)
    measured = server(
        *waits,
        sleep,
        processes=(SERVER, SERVER._replace(pid=9), writer),
        threads=tuple(ThreadTime(pid, pid, 0.1, 0.0) for pid in (7, 8, 9)),
        wakers=tuple(WakerSum(pid, "futex", 8, 8, 9.0, 40) for pid in (7, 9)),
    )
    text = next(text for text in texts(measured) if "for the lock that lookup takes" in text)
    assert "who gives it to them sleeps in archive" in text


def test_thousands_of_threads_cost_no_minutes() -> None:
    waits = tuple(
        WaitSum(7, tid, "futex", 1, -1, 0, Endpoint(), 0.1, 9, 0.1) for tid in range(8000)
    )
    calls = tuple(CallCount(7, f"call{n}", 0, 9000) for n in range(40))
    began = time.process_time()
    find(server(waits=waits, calls=calls))
    assert time.process_time() - began < 20
