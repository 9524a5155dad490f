"""The spool: whole or absent, bounded, the oldest dropped and counted."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from purebpf.services.agent import spool as module
from purebpf.services.agent.spool import Spool, file_name

NOW_NS = time.time_ns()
MINUTE_NS = 60 * 10**9


def name(minutes_ago: int, number: int = 0) -> str:
    return file_name(NOW_NS - minutes_ago * MINUTE_NS, "cpu", "0123abcd", number)


def made(tmp_path: Path, sinks: tuple[str, ...] = ("a", "b"), size: int = 1 << 20) -> Spool:
    return Spool(str(tmp_path), sinks, max_bytes=size, max_age_s=3600)


def test_a_window_waits_for_each_sink_and_takes_its_room_once(tmp_path: Path) -> None:
    spool = made(tmp_path)
    assert spool.add(name(1), b"x" * 1000)
    assert spool.nbytes == 1000
    assert spool.read("a", name(1)) == b"x" * 1000
    spool.done("a", name(1))
    assert (spool.newest("a"), spool.newest("b")) == (None, name(1))
    assert spool.nbytes == 1000
    spool.done("b", name(1))
    assert spool.nbytes == 0
    assert spool.dropped == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_newest_comes_first_also_after_a_restart(tmp_path: Path) -> None:
    spool = made(tmp_path)
    for minutes in (3, 1, 2):
        spool.add(name(minutes), b"x")
    assert made(tmp_path).newest("a") == name(1)
    assert spool.waiting("a") == 3


def test_the_oldest_go_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    spool = made(tmp_path, size=2500)
    for minutes in (5, 4, 3, 2):
        spool.add(name(minutes), b"x" * 1000)
    assert sorted(os.listdir(tmp_path / "a")) == [name(3), name(2)]
    assert spool.dropped == 2
    assert spool.nbytes == 2000


def test_one_window_larger_than_the_room_is_kept(tmp_path: Path) -> None:
    spool = made(tmp_path, size=10)
    spool.add(name(1), b"x" * 1000)
    assert spool.newest("a") == name(1)


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    spool = made(tmp_path)
    spool.add(name(90), b"x")
    spool.add(name(1), b"x")
    assert spool.waiting("b") == 1
    assert spool.dropped == 1


def test_what_a_killed_agent_was_writing_is_removed(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "new" / name(1)).write_bytes(b"half")
    spool = made(tmp_path)
    assert spool.newest("a") is None
    assert os.listdir(tmp_path / "new") == []


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    spool = made(tmp_path)
    (tmp_path / "a" / "README").write_text("mine")
    assert spool.newest("a") is None
    assert spool.nbytes == 0


def test_a_full_disk_costs_the_oldest_and_then_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = made(tmp_path)
    spool.add(name(3), b"x")
    spool.add(name(2), b"x")
    room = {"left": 1}

    def refuse(fd: int) -> None:
        """The disk has room once one window is gone."""
        if len(os.listdir(tmp_path / "a")) > room["left"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, "fsync", refuse)
    assert spool.add(name(1), b"x")
    assert sorted(os.listdir(tmp_path / "a")) == [name(1)], "linked before the directory is synced"
    dropped = spool.dropped
    room["left"] = -1
    assert not spool.add(name(0), b"x")
    assert spool.dropped > dropped
    assert os.listdir(tmp_path / "a") == os.listdir(tmp_path / "new") == []


def test_a_damaged_file_is_set_aside_and_counted(tmp_path: Path) -> None:
    spool = made(tmp_path)
    for number in range(20):
        spool.add(name(1, number), b"x")
        spool.set_aside("a", name(1, number))
    assert spool.corrupt == 20
    assert spool.newest("a") is None
    assert spool.waiting("b") == 20
    assert len(os.listdir(tmp_path / "corrupt")) == 16


def test_a_window_that_was_dropped_in_between_is_none(tmp_path: Path) -> None:
    assert made(tmp_path).read("a", name(1)) is None


def test_without_sinks_nothing_is_kept(tmp_path: Path) -> None:
    spool = made(tmp_path, sinks=())
    assert spool.add(name(1), b"x")
    assert spool.nbytes == 0
