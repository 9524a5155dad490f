"""A child reads what may never end: as pread(2) does, and it is left behind when it waits."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.syscall import left_reader
from purebpf.syscall.left_reader import LeftReader

CONTENT = bytes(range(256)) * 20_000


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_bytes(CONTENT)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def reader() -> Iterator[LeftReader]:
    reader = LeftReader()
    reader.enter()
    yield reader
    reader.leave()


@pytest.mark.parametrize(
    ("size", "offset"),
    [
        *((1, 0), (4096, 5), (len(CONTENT), 0), (100, len(CONTENT) - 7), (8, len(CONTENT))),
        *((8, 1 << 63), (8, (1 << 64) - 1), (8, 1 << 64), (8, -1), (0, 0)),
    ],
)
def test_it_gives_what_is_there(reader: LeftReader, fd: int, size: int, offset: int) -> None:
    expected = CONTENT[offset : offset + size] if 0 <= offset < 1 << 63 else b""
    assert reader.read(fd, size, offset, 4711) == expected


def test_what_cannot_be_read_is_empty(reader: LeftReader, tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    assert reader.read(folder, 8, 0, 4711) == b""
    os.close(folder)
    assert not reader._unanswered()


def test_its_child_keeps_no_other_descriptor(reader: LeftReader, fd: int) -> None:
    reader.read(fd, 1, 0, 4711)
    assert os.listdir(f"/proc/{reader._child}/fd") == ["0"]


def test_a_child_that_was_killed_is_replaced(reader: LeftReader, fd: int) -> None:
    assert reader.read(fd, 1, 1, 4711) == b"\x01"
    os.kill(reader._child, signal.SIGKILL)
    os.waitid(os.P_PID, reader._child, os.WEXITED | os.WNOWAIT)
    assert reader.read(fd, 1, 2, 4711) == b""
    assert reader.read(fd, 1, 3, 4711) == b"\x03"


def test_a_fork_has_a_child_of_its_own(reader: LeftReader, fd: int) -> None:
    assert reader.read(fd, 1, 1, 4711) == b"\x01"
    forked = os.fork()
    if not forked:
        status = 1
        try:
            status = reader.read(fd, 1, 2, 4711) != b"\x02"
            reader.leave()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert reader.read(fd, 1, 3, 4711) == b"\x03"


def test_it_ends_with_the_last_that_needs_it(fd: int) -> None:
    reader = LeftReader()
    reader.enter()
    reader.enter()
    reader.read(fd, 1, 0, 4711)
    reader.leave()
    assert os.path.exists(f"/proc/{reader._child}")
    reader.leave()
    assert not os.path.exists(f"/proc/{reader._child}")


def test_reads_that_wait_are_given_up(
    reader: LeftReader, fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two for a user, and some in all; others are read."""
    monkeypatch.setattr(left_reader, "PATIENCE_S", 0.2)
    monkeypatch.setattr(left_reader, "_MOST", 3)
    pread = os.pread
    monkeypatch.setattr(
        os, "pread", lambda *words: time.sleep(1000) if words[2] == 13 else pread(*words)
    )
    waits = 0.0
    for user, wait in ((1, 13), (2, 0), (1, 13), (2, 0), (1, 0), (2, 13), (3, 0)):
        began = time.monotonic()
        content = reader.read(fd, 1, wait, user)
        waits += time.monotonic() - began
        unanswered = reader._unanswered()
        assert (content is None) == (wait == 13 or unanswered[user] == 2 or unanswered.total() == 3)
    assert reader._unanswered() == {1: 2, 2: 1}
    assert 0.5 < waits < 10
    monkeypatch.setattr(left_reader, "_FORGIVEN_S", 0)
    assert reader.read(fd, 1, 0, 1) == b"\0"


def test_no_more_processes(reader: LeftReader, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError

    with monkeypatch.context() as there:
        there.setattr(os, "fork", fork)
        assert reader.read(fd, 1, 1, 4711) == b""
    assert reader.read(fd, 1, 1, 4711) == b"\x01"
