"""What descriptors are open on, followed from call to call."""

from __future__ import annotations

import os
import tracemalloc

from purebpf.tools.trace.descriptors import AT_FDCWD, Descriptors, numbers_as_we_do

PID = 1 << 30  # of no process: /proc says nothing
CWD = AT_FDCWD & 0xFFFFFFFF
CLONE_THREAD = 0x10000


def words(*given: int) -> tuple[int, ...]:
    return (*given, *(0,) * (6 - len(given)))


def test_what_a_process_opens_is_known() -> None:
    known = Descriptors(follows=True)
    known.learn(PID, "openat", words(CWD), 3, "/etc/../etc/hosts")
    known.learn(PID, "openat", words(3), 4, "below")
    known.learn(PID, "open", words(), 5, "relative")  # to a directory that is not known
    known.learn(PID, "chdir", words(), 0, "/tmp")
    known.learn(PID, "creat", words(), 6, "new")
    assert [known.path(PID, number) for number in (3, 4, 5, 6)] == [
        "/etc/hosts", "/etc/hosts/below", None, "/tmp/new",
    ]  # fmt: skip
    known.learn(PID, "openat", words(CWD), -2, "/nothing")
    assert known.path(PID, -2) is None


def test_copies_and_ends_are_followed() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    known.learn(PID, "open", words(), 3, "/one")
    known.learn(PID, "dup2", words(3, 9), 9, None)
    known.learn(PID, "fcntl", words(3, 1030), 10, None)
    known.learn(PID, "fchdir", words(3), 0, None)
    known.learn(PID, "clone", words(), PID + 1, None)
    known.learn(PID, "close", words(3), 0, None)
    assert [known.path(PID, number) for number in (3, 9, 10, AT_FDCWD)] == [
        None, "/one", "/one", "/one",
    ]  # fmt: skip
    assert known.path(PID + 1, 3) == "/one"
    known.learn(PID, "close_range", words(9, 0xFFFFFFFF), 0, None)
    assert known.path(PID, 9) is None
    known.forget(PID + 1)
    assert known.path(PID + 1, 3) is None


def test_what_is_older_is_read_from_proc() -> None:
    with open(__file__, encoding="utf-8") as file:
        for known in (Descriptors(follows=True), Descriptors(follows=False)):
            assert known.path(os.getpid(), file.fileno()) == os.path.realpath(__file__)
            assert known.path(os.getpid(), AT_FDCWD) == os.getcwd()


def test_a_fork_in_another_pid_namespace_says_nothing_of_our_numbers() -> None:
    """Any user may make one, and have fork(2) give any number there."""
    known = Descriptors(follows=True, numbers_as_we_do=lambda pid: pid != PID)
    known.learn(PID, "open", words(), 3, "/forged")
    known.learn(PID, "clone", words(17), PID + 1, None)
    assert known.path(PID + 1, 3) is None
    assert numbers_as_we_do(os.getpid())
    assert not numbers_as_we_do(PID)


def test_threads_copy_nothing() -> None:
    known = Descriptors(follows=True, numbers_as_we_do=lambda _: True)
    known.learn(PID, "open", words(), 3, "/one")
    known.learn(PID, "clone", words(CLONE_THREAD), PID + 1, None)
    assert known.path(PID + 1, 3) is None


def test_memory_is_bounded() -> None:
    """By descriptors, by children that are copies, and by directories of any depth."""
    known = Descriptors(follows=True, room=1 << 16, numbers_as_we_do=lambda _: True)
    tracemalloc.start()
    try:
        for number in range(1009):
            known.learn(PID, "open", words(), number, f"/{number:01000}")
        for child in range(1, 1009):
            known.learn(PID, "fork", words(), PID + child, None)
        for _ in range(1009):
            known.learn(PID, "chdir", words(), 0, "x" * 200 if _ else "/x")
        assert tracemalloc.get_traced_memory()[0] < 1 << 18
    finally:
        tracemalloc.stop()
    assert len(known.path(PID, AT_FDCWD) or "") <= 4096


def test_room_is_given_back() -> None:
    known = Descriptors(follows=True, room=1 << 16, numbers_as_we_do=lambda _: True)
    known.learn(PID, "open", words(), 3, "/kept")
    for turn in range(1009):
        known.learn(PID, "open", words(), 4, "/" + "x" * 1000)
        known.learn(PID, "close", words(4), 0, None)
        known.learn(PID, "fork", words(), PID + 1 + turn, None)
        known.forget(PID + 1 + turn)
    assert known.path(PID, 3) == "/kept"
