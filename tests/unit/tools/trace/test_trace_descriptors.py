"""What descriptors are open on, followed from call to call."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

import pytest

from purebpf.tools.trace import TraceOptions
from purebpf.tools.trace.descriptors import AT_FDCWD, Descriptors, numbers_as_we_do

PID = 1 << 30  # of no process: /proc says nothing
TASK = (PID, PID)
CWD = AT_FDCWD & 0xFFFFFFFF
CLONE_FS, CLONE_FILES, CLONE_THREAD = 0x200, 0x400, 0x10000
THREAD = CLONE_FS | CLONE_FILES | CLONE_THREAD
NEWNS = 0x20000
CLOEXEC = os.O_CLOEXEC


def words(*given: int) -> tuple[int, ...]:
    return (*given, *(0,) * (6 - len(given)))


def test_what_a_process_opens_is_known() -> None:
    known = Descriptors(follows=True)
    known.learn(TASK, "openat", words(CWD), 3, "/etc/../etc/hosts")
    known.learn(TASK, "openat", words(3), 4, "below")
    known.learn(TASK, "open", words(), 5, "relative")  # to a directory that is not known
    known.learn(TASK, "chdir", words(), 0, "/tmp")
    known.learn(TASK, "creat", words(), 6, "new")
    assert [known.path(TASK, number) for number in (3, 4, 5, 6)] == [
        "/etc/hosts", "/etc/hosts/below", None, "/tmp/new",
    ]  # fmt: skip
    known.learn(TASK, "openat", words(CWD), -2, "/nothing")
    assert known.path(TASK, -2) is None


def test_copies_and_ends_are_followed() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    known.learn(TASK, "open", words(), 3, "/one")
    known.learn(TASK, "dup2", words(3, 9), 9, None)
    known.learn(TASK, "fcntl", words(3, 1030), 10, None)
    known.learn(TASK, "fchdir", words(3), 0, None)
    known.learn(TASK, "clone", words(), PID + 1, None)
    known.learn(TASK, "close", words(3), 0, None)
    assert [known.path(TASK, number) for number in (3, 9, 10, AT_FDCWD)] == [
        None, "/one", "/one", "/one",
    ]  # fmt: skip
    assert known.path((PID + 1, PID + 1), 3) == "/one"
    known.learn(TASK, "close_range", words(9, 0xFFFFFFFF), 0, None)
    assert known.path(TASK, 9) is None
    known.forget(PID + 1)
    assert known.path((PID + 1, PID + 1), 3) is None


def test_what_is_older_is_read_from_proc() -> None:
    with open(__file__, encoding="utf-8") as file:
        for known in (Descriptors(follows=True), Descriptors(follows=False)):
            task = os.getpid(), os.getpid()
            assert known.path(task, file.fileno()) == os.path.realpath(__file__)
            assert known.path(task, AT_FDCWD) == os.getcwd()


def test_a_fork_in_another_pid_namespace_says_nothing_of_our_numbers() -> None:
    """Any user may make one, and have fork(2) give any number there."""
    known = Descriptors(follows=True, numbers_as_we_do=lambda pid: pid != PID)
    known.learn(TASK, "open", words(), 3, "/forged")
    known.learn(TASK, "clone", words(17), PID + 1, None)
    assert known.path((PID + 1, PID + 1), 3) is None
    assert numbers_as_we_do(os.getpid())
    assert not numbers_as_we_do(PID)


def test_threads_share_their_descriptors() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    known.learn(TASK, "open", words(), 3, "/one")
    known.learn(TASK, "clone", words(THREAD), PID + 1, None)
    assert known.path((PID, PID + 1), 3) == "/one"
    known.learn((PID, PID + 1), "close", words(3), 0, None)
    assert known.path(TASK, 3) is None


def test_memory_is_bounded() -> None:
    """By descriptors, by children that are copies, and by directories of any depth."""
    known = Descriptors(follows=True, room=1 << 16, numbers_as_we_do=lambda _: True)
    tracemalloc.start()
    try:
        for number in range(1009):
            known.learn(TASK, "open", words(), number, f"/{number:01000}")
        for child in range(1, 1009):
            known.learn(TASK, "fork", words(), PID + child, None)
        for _ in range(1009):
            known.learn(TASK, "chdir", words(), 0, "x" * 200 if _ else "/x")
        assert tracemalloc.get_traced_memory()[0] < 1 << 18
    finally:
        tracemalloc.stop()
    assert len(known.path(TASK, AT_FDCWD) or "") <= 4096


def test_room_is_given_back() -> None:
    known = Descriptors(follows=True, room=1 << 16, numbers_as_we_do=lambda _: True)
    known.learn(TASK, "open", words(), 3, "/kept")
    for turn in range(1009):
        known.learn(TASK, "open", words(), 4, "/" + "x" * 1000)
        known.learn(TASK, "close", words(4), 0, None)
        known.learn(TASK, "fork", words(), PID + 1 + turn, None)
        known.forget(PID + 1 + turn)
    assert known.path(TASK, 3) == "/kept"


def test_a_thread_that_parts_from_the_others_has_its_own() -> None:
    """As after unshare(2) and close_range(2), in a process whose first thread goes on."""
    for name, given in (("unshare", words(CLONE_FILES)), ("close_range", words(500, 600, 2))):
        known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
        one, other = TASK, (PID, PID + 1)
        known.learn(one, "open", words(), 3, "/one")
        known.learn(one, "clone3", words(), PID + 1, None, THREAD)
        known.learn(other, name, given, 0, None)
        assert known.path(other, 3) == "/one"
        known.learn(other, "close", words(3), 0, None)
        known.learn(other, "open", words(), 3, "/other")
        known.learn(other, "chdir", words(), 0, "/tmp")
        assert [known.path(one, 3), known.path(other, 3)] == ["/one", "/other"]
        assert known.path(one, AT_FDCWD) == "/tmp"


def test_a_thread_with_another_current_directory() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    one, other = TASK, (PID, PID + 1)
    known.learn(one, "chdir", words(), 0, "/one")
    known.learn(one, "clone", words(THREAD), PID + 1, None)
    known.learn(one, "unshare", words(NEWNS), 0, None)
    known.learn(one, "chdir", words(), 0, "/two")
    known.learn(one, "open", words(), 3, "below")
    assert [known.path(task, AT_FDCWD) for task in (one, other)] == ["/two", "/one"]
    assert known.path(other, 3) == "/two/below"
    known.learn(one, "setns", words(7), 0, None)
    assert known.path(one, AT_FDCWD) is None


def test_a_thread_that_parted_before_is_found() -> None:
    known = Descriptors(follows=True, shares=lambda tid, _: (tid != PID + 1, True))
    known.learn(TASK, "open", words(), 3, "/one")
    known.learn((PID, PID + 1), "open", words(), 3, "/other")
    known.learn((PID, PID + 2), "open", words(), 4, "/two")
    assert known.path(TASK, 3) == "/one"
    assert known.path(TASK, 4) == "/two"
    assert known.path((PID, PID + 1), 3) == "/other"


def test_processes_that_share_their_descriptors() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    child = (PID + 1, PID + 1)
    known.learn(TASK, "open", words(), 3, "/one")
    known.learn(TASK, "clone", words(CLONE_FILES), PID + 1, None)
    known.learn(child, "close", words(3), 0, None)
    known.learn(child, "open", words(), 3, "/two")
    assert known.path(TASK, 3) == known.path(child, 3) == "/two"
    known.learn(child, "execve", words(), 0, None)  # they share no more
    known.learn(child, "open", words(), 3, "/three")
    assert [known.path(TASK, 3), known.path(child, 3)] == ["/two", "/three"]


def test_what_a_child_did_before_its_parent_went_on_is_kept() -> None:
    """vfork(2) returns when the child has executed a program."""
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    child = (PID + 1, PID + 1)
    known.learn(TASK, "open", words(), 1, "/terminal")
    known.learn(child, "open", words(), 1, "/result")
    known.learn(TASK, "vfork", words(), PID + 1, None)
    assert [known.path(TASK, 1), known.path(child, 1)] == ["/terminal", "/result"]


def test_execve_closes_descriptors() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    known.learn(TASK, "open", words(0, CLOEXEC), 3, "/closed")
    known.learn(TASK, "openat", words(CWD, 0, CLOEXEC), 4, "/closed")
    known.learn(TASK, "openat2", words(CWD), 5, "/closed", CLOEXEC)
    known.learn(TASK, "openat2", words(CWD), 6, "/closed")  # not known
    known.learn(TASK, "dup3", words(3, 7, CLOEXEC), 7, None)
    known.learn(TASK, "fcntl", words(3, 1030), 8, None)
    known.learn(TASK, "open", words(), 9, "/closed")
    known.learn(TASK, "fcntl", words(9, 2, 1), 0, None)
    known.learn(TASK, "open", words(), 10, "/closed")
    known.learn(TASK, "ioctl", words(10, 0x5451), 0, None)
    known.learn(TASK, "open", words(), 11, "/closed")
    known.learn(TASK, "close_range", words(11, 11, 4), 0, None)
    known.learn(TASK, "dup2", words(3, 20), 20, None)
    known.learn(TASK, "openat2", words(CWD), 21, "/kept", 0)
    known.learn(TASK, "open", words(0, CLOEXEC), 22, "/kept")
    known.learn(TASK, "fcntl", words(22, 2, 0), 0, None)
    known.learn(TASK, "chdir", words(), 0, "/kept")
    known.learn(TASK, "execve", words(), 0, None)
    paths = {number: known.path(TASK, number) for number in range(3, 23)}
    kept = {20: "/closed", 21: "/kept", 22: "/kept"}
    assert {number: path for number, path in paths.items() if path} == kept
    assert known.path(TASK, AT_FDCWD) == "/kept"


def test_execve_of_threads_that_do_not_share() -> None:
    """The call returns in the first thread's number, whoever made it."""
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    known.learn(TASK, "clone", words(CLONE_THREAD | CLONE_FS), PID + 1, None)
    known.learn((PID, PID + 1), "open", words(), 3, "/other")
    known.learn(TASK, "open", words(), 3, "/one")
    known.learn(TASK, "execve", words(), 0, None)
    assert known.path(TASK, 3) is None


def test_lost_calls_are_the_end_of_all_that_was_known() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    known.learn(TASK, "open", words(), 3, "/one")
    known.forget_all()
    assert known.path(TASK, 3) is None


@pytest.mark.parametrize(
    "asked",
    [
        {"events": ("read",)}, {"failed": True}, {"least_ms": 1.0}, {"tids": (7,)}, {"cpus": (0,)},
        {"comm": "cat"}, {"cgroup": "/x"}, {"uid": 0},
    ],
)  # fmt: skip
def test_where_calls_are_left_out_nothing_is_followed(asked: dict[str, Any]) -> None:
    assert TraceOptions(pids=(7,), tree=True, paths=True).traces_all_calls
    assert not TraceOptions(**asked).traces_all_calls


def test_many_threads_take_bounded_memory() -> None:
    known = Descriptors(follows=True, room=1 << 16, shares=lambda *_: (False, False))
    tracemalloc.start()
    try:
        for thread in range(5003):
            known.learn((PID, PID + thread), "open", words(), 3, "/one")
        assert tracemalloc.get_traced_memory()[0] < 1 << 18
    finally:
        tracemalloc.stop()
