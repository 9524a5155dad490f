"""The use of file systems at several looks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from purebpf.findings.facts import FileSystem
from purebpf.syscall import proc
from purebpf.tools.triage import file_systems
from purebpf.tools.triage.file_systems import FileSystemWatch

MOUNTS = """\
/dev/vda / ext4 rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
tmpfs /mnt/again tmpfs rw 0 0
server:/x /mnt/gone nfs rw 0 0
"""
DEVICES = {"/": 1, "/dev/shm": 2, "/mnt/again": 2}
COVERED = """\
host / virtiofs rw 0 0
/dev/vda /home ext4 rw 0 0
tmpfs /home/u/tmp tmpfs rw 0 0
tmpfs /run/user/1000 tmpfs rw 0 0
tmpfs /home/u2 tmpfs rw 0 0
sshfs /home/u fuse.sshfs rw,user_id=1000,allow_other 0 0
portal /run/user/1000 fuse rw,user_id=1000 0 0
server:/x /mnt/gone nfs rw 0 0
/dev/vdb /mnt/gone/far/below xfs rw 0 0
"""


def test_the_use_at_each_look_of_those_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = {"/": 500, "/dev/shm": 900}

    def fstatvfs(path: str) -> SimpleNamespace:
        free = blocks[path]
        return SimpleNamespace(f_blocks=1000, f_bfree=free, f_bavail=free - 10, f_frsize=4096)

    monkeypatch.setattr(proc, "read", lambda _: MOUNTS)
    calls = SimpleNamespace(
        fstat=lambda path: SimpleNamespace(st_dev=DEVICES[path]),
        fstatvfs=fstatvfs,
        close=lambda _: None,
    )
    monkeypatch.setattr(file_systems, "os", calls)
    monkeypatch.setattr(file_systems, "open_place", lambda path, *, follow: path)
    watching = FileSystemWatch()
    watching.tick()
    blocks["/dev/shm"] = 800
    watching.tick()
    used = (100 * 4096, 200 * 4096)
    assert watching.finish() == (FileSystem("/dev/shm", "tmpfs", 790 * 4096, used),)


def test_no_path_through_a_file_system_that_may_not_answer_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below one, and where one covers a local one: a user's FUSE, and a server that is gone."""
    opened = []

    def open_place(path: str, *, follow: bool) -> int:
        assert not follow
        opened.append(path)
        raise FileNotFoundError

    monkeypatch.setattr(proc, "read", lambda _: COVERED)
    monkeypatch.setattr(file_systems, "open_place", open_place)
    FileSystemWatch().tick()
    assert opened == ["/home", "/home/u2"]


def test_the_real_ones_can_be_read() -> None:
    watching = FileSystemWatch()
    watching.tick()
    watching.tick()
    assert all(len(one.used) == 2 for one in watching.finish())
