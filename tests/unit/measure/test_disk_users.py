"""Who uses the disks, by /proc/PID/io, and the command lines of targets."""

from __future__ import annotations

import os

import pytest

from purebpf.measure import disk_users
from purebpf.measure.disk_users import DiskUsers
from purebpf.measure.target_names import name_commands


def test_the_processes_that_move_most_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = {7: 0, 8: 5_000_000}
    monkeypatch.setattr(disk_users, "_moved", lambda: dict(moved))
    monkeypatch.setattr(disk_users, "_name", lambda pid: {7: "backup", 8: "app"}[pid])
    monkeypatch.setattr(disk_users.time, "monotonic", lambda: now[0])
    now = [100.0]
    users = DiskUsers()
    now[0] += 10
    assert users.sentence() == ""
    moved[7], moved[8] = 2_000_000_000, 5_100_000
    assert users.sentence() == "the disk is used by backup (7) 200 MB/s"


def test_this_process_has_counters_and_a_command() -> None:
    assert disk_users._name(os.getpid())
    (command,) = name_commands([os.getpid()])
    assert command.startswith(f"{os.getpid()}: ")
    assert name_commands([1 << 22]) == []
