"""Programs that are traced or stopped by others, locks of libc, datagrams that are refused."""

from __future__ import annotations

import errno

from purebpf.findings.facts import (
    Activity,
    CallCount,
    Endpoint,
    Facts,
    Process,
    SignalCount,
    Socket,
    StackFrame,
    WaitSum,
    WakerSum,
)
from purebpf.findings.find import find
from tests.support.builders.facts import facts, native, running, waiting

EXE, PORT = "/srv/relayd", 8080
PTRACED = ("ptrace_stop", "ptrace_do_notify", "ptrace_notify", "syscall_exit_work")
FROZEN = ("do_freezer_trap", "get_signal", "arch_do_signal_or_restart")
LISTENER = Socket(51, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10)
CONNECTED = Socket(52, "tcp", "127.0.0.1", PORT, "127.0.0.1", 40001, 1)


def texts(measured: Facts) -> list[str]:
    return ["; ".join((one.text, *one.evidence)) for one in find(measured) if not one.is_busy]


def stop(kernel: tuple[str, ...], seconds: float = 9.0) -> Activity:
    user = (StackFrame("read", "/lib/libc.so.6"), StackFrame("sum_table", EXE))
    return Activity(7, 7, "relayd", "wait", "t", seconds, kernel, user, "read", 5)


def program(*stays: Activity, state: str = "S") -> Facts:
    return Facts(
        10.0,
        2,
        activities=stays,
        sockets=(LISTENER, CONNECTED),
        descriptors={7: {3: "socket:[51]", 4: "socket:[52]"}},
        processes=(
            Process(7, 1, "relayd", EXE, state=state),
            Process(8, 1, "strace", "/usr/bin/strace", command="strace -f -p 7"),
        ),
    )


def test_a_traced_program_names_its_tracer() -> None:
    wait = WaitSum(7, 7, "read", 5, 5, 0, Endpoint("file"), 9.0, 90_000, 0.01)
    measured = program(stop(PTRACED))._replace(
        waits=(wait, WaitSum(8, 8, "wait4", 0, -1, 0, Endpoint(), 9.0, 90_000, 0.01)),
        wakers=(WakerSum(7, "read", 8, 8, 9.0, 90_000),),
        calls=(CallCount(8, "ptrace", 0, 180_000),),
        signals=(SignalCount(7, 8, 17, 90_000),),  # SIGCHLD
    )
    (text,) = texts(measured)
    assert "is traced by strace (8) (ptrace), which stops it 9000 times a second" in text
    assert "1 thread stopped 90 % of the time; its command: strace -f -p 7" in text
    assert "most in sum_table" in text


def test_a_short_look_of_a_debugger_is_no_incident() -> None:
    assert texts(program(stop(PTRACED, seconds=0.3))) == []


def test_a_stopped_server_is_named() -> None:
    (text,) = texts(program(state="T"))
    assert "is stopped (SIGSTOP; state T): it answers nobody" in text
    assert texts(program()) == []


def test_a_stopped_job_of_a_shell_is_no_incident() -> None:
    alone = program(state="T")._replace(descriptors={7: {0: "/dev/pts/1"}})
    assert texts(alone) == []


def test_a_frozen_server_is_named() -> None:
    (text,) = texts(program(stop(FROZEN)))
    assert "is stopped (its cgroup is frozen)" in text


def test_a_lock_of_malloc_is_not_the_programs() -> None:
    libc = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    frames = (native("__lll_lock_wait_private", libc), native("malloc", libc))
    work = StackFrame("add_item", EXE)
    waits = [waiting(7, tid, "futex", *frames, work, seconds=5.0) for tid in (8, 9)]
    holder = running(7, 10, native("_int_malloc", libc), work, seconds=6.0)
    found = texts(facts(*waits, holder, exe=EXE))
    assert any("2 threads wait for a lock of malloc in add_item" in text for text in found)
    own = [one._replace(user=(native("__lll_lock_wait", libc), work)) for one in waits]
    found = texts(facts(*own, holder, exe=EXE))
    assert any("2 threads wait for the lock that add_item takes" in text for text in found)


def sending(failed: int, *, is_heard: bool = False) -> Facts:
    udp = Socket(60, "udp", "127.0.0.1", 50000, "127.0.0.1", 8125, 1)
    heard = (Socket(61, "udp", "127.0.0.1", 8125, "0.0.0.0", 0, 7),) if is_heard else ()
    return Facts(
        10.0,
        2,
        activities=(running(7, 7, native("write"), StackFrame("count", EXE), seconds=0.5),),
        calls=(
            CallCount(7, "write", errno.ECONNREFUSED, failed),
            CallCount(7, "write", 0, 5000),
        ),
        sockets=(udp, *heard),
        processes=(Process(7, 1, "checkout", EXE),),
    )


def test_datagrams_to_nobody_are_named_with_their_peer() -> None:
    (text,) = texts(sending(5000))
    assert "sends datagrams to 127.0.0.1:8125, and 500 a second are refused" in text
    assert "nobody listens on that UDP port; in count" in text
    assert texts(sending(20)) == []
    assert texts(sending(5000, is_heard=True)) == []
