"""Threads that do not accept the connections in their queue, and children that close in vain."""

from __future__ import annotations

import errno

from purebpf.findings.facts import (
    Activity,
    CallCount,
    Endpoint,
    Facts,
    Process,
    Socket,
    StackFrame,
    WaitSum,
)
from purebpf.findings.find import find
from purebpf.findings.ownership import Program
from tests.support.builders.facts import native, waiting

EXE, PORT = "/srv/gated", 8080
CLIENT = Endpoint("socket", "inet", "127.0.0.1", 40001, PORT, 30)
MAIN = (StackFrame("main", EXE), StackFrame("__libc_start_main", "/lib/libc.so.6"))


def serving(stay: Activity, *, queue: float, peer: Endpoint = CLIENT) -> Facts:
    wait = WaitSum(7, 7, stay.call, stay.argument, 5, 0, peer, stay.seconds, 6, 1.5)
    return Facts(
        10.0,
        2,
        activities=(stay,),
        waits=(wait,),
        sockets=(Socket(51, "tcp", "127.0.0.1", PORT, "0.0.0.0", 0, 10, queue),),
        descriptors={7: {3: "socket:[51]"}},
        processes=(Process(7, 1, "gated", EXE),),
    )


def texts(measured: Facts) -> list[str]:
    return ["; ".join((one.text, *one.evidence)) for one in find(measured) if not one.is_busy]


def test_a_client_that_sends_nothing_keeps_a_thread_from_accepting() -> None:
    reading = waiting(7, 7, "recvfrom", StackFrame("read_head", EXE), *MAIN)
    (text,) = texts(serving(reading, queue=6.0))
    assert "6.0 connections wait to be accepted on port 8080" in text
    assert "meanwhile it waits for a client to send its request in read_head (100 %" in text
    assert texts(serving(reading, queue=0.0)) == []


def test_a_child_keeps_its_parent_from_accepting() -> None:
    child = Activity(
        *(7, 7, "gated", "wait", "S", 9.0, ("do_wait", "kernel_wait4"), MAIN, "wait4", 0)
    )
    child = child._replace(user=(StackFrame("run_filter", EXE), *MAIN))
    (text,) = texts(serving(child, queue=2.0, peer=Endpoint()))
    assert "meanwhile it waits for a child process in run_filter" in text
    assert texts(serving(child, queue=0.0, peer=Endpoint())) == []


def closing(times: int) -> Facts:
    """Four children of a server that came and went."""
    parent = waiting(7, 7, "epoll_wait", StackFrame("serve", EXE), *MAIN)._replace(comm="gated")
    children = [
        Activity(pid, pid, "gated", "cpu", "", 0.1, (), (native("__close"),))
        for pid in range(20, 24)
    ]
    calls = tuple(CallCount(pid, "close", errno.EBADF, times) for pid in range(20, 24))
    return Facts(
        10.0,
        2,
        activities=(parent, *children),
        calls=calls,
        processes=(Process(7, 1, "gated", EXE, children_cpu_s=3.0),),
    )


def test_children_close_what_is_not_open() -> None:
    (text,) = texts(closing(100_000))
    assert "closes 40000 descriptors a second that are not open (EBADF), in children that" in text
    assert "100000 in one process; close_range(2) is one call; 0.30 CPUs" in text
    assert texts(closing(1000)) == []  # a limit of 1024 descriptors


def test_a_reference_to_a_type_of_rusts_library_is_the_librarys() -> None:
    program = Program(EXE)
    for name in ("<&std::net::TcpStream as std::io::Read>::read", "<&mut std::fs::File>::read"):
        assert not program.owns(StackFrame(name, EXE))
    assert program.owns(StackFrame("<&shop::Cart as std::io::Read>::read", EXE))
