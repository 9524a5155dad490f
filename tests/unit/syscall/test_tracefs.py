"""tracefs where it is mounted, from files made for the purpose."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from purebpf.errors import KernelError, NotSupportedError
from purebpf.syscall import proc, tracefs


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    event = tmp_path / "events/sched/sched_switch"
    event.mkdir(parents=True)
    (event / "id").write_text("372\n")
    (event / "format").write_text("name: sched_switch\nID: 372\n")
    (tmp_path / "events/sched/enable").write_text("0")
    (tmp_path / "events/header_page").write_text("")
    monkeypatch.setattr(proc, "mounts", lambda: [("/", "ext4"), (str(tmp_path), "tracefs")])
    return tmp_path


def test_a_tracepoint_has_an_id_and_a_format(mount):
    assert tracefs.tracepoint_id("sched", "sched_switch") == 372
    assert tracefs.tracepoint_format("sched", "sched_switch").startswith("name: sched_switch")


def test_an_unknown_tracepoint_is_enoent_with_its_path(mount):
    with pytest.raises(KernelError, match="events/sched/sched_swich/id") as caught:
        tracefs.tracepoint_id("sched", "sched_swich")
    assert caught.value.errno == errno.ENOENT


def test_only_directories_with_an_id_are_tracepoints(mount):
    (mount / "events/sched/half").mkdir()
    assert tracefs.tracepoints() == ["sched/sched_switch"]


def test_below_debugfs_it_counts_too(mount, monkeypatch, tmp_path):
    debug = tmp_path / "debug"
    (debug / "tracing/events").mkdir(parents=True)
    monkeypatch.setattr(proc, "mounts", lambda: [(str(debug), "debugfs")])
    assert tracefs.mount_point() == f"{debug}/tracing"


def test_a_stale_mount_is_passed_over(mount, monkeypatch, tmp_path):
    monkeypatch.setattr(
        proc, "mounts", lambda: [(str(tmp_path / "gone"), "tracefs"), (str(mount), "tracefs")]
    )
    assert tracefs.mount_point() == str(mount)


def test_a_mount_that_another_user_could_replace_is_passed_over(mount, monkeypatch):
    monkeypatch.setattr(proc, "mounts", lambda: [(str(mount), "tracefs")])
    assert tracefs.mount_point() == str(mount)
    mount.chmod(0o777)
    assert tracefs.mount_point() is None


def test_where_it_is_not_mounted_and_may_not_be_opened_the_command_is_printed(monkeypatch):
    monkeypatch.setattr(proc, "mounts", list)
    monkeypatch.setattr(tracefs, "_SYS_FSOPEN", 1 << 20)  # no such system call: a kernel before 5.2
    with pytest.raises(
        NotSupportedError, match="mount -t tracefs nodev /sys/kernel/tracing"
    ) as caught:
        tracefs.tracepoint_id("sched", "sched_switch")
    assert "ENOSYS" in caught.value.reason
