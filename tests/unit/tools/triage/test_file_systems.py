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


def test_the_use_at_each_look_of_those_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = {"/": 500, "/dev/shm": 900}

    def statvfs(path: str) -> SimpleNamespace:
        free = blocks[path]
        return SimpleNamespace(f_blocks=1000, f_bfree=free, f_bavail=free - 10, f_frsize=4096)

    monkeypatch.setattr(proc, "read", lambda _: MOUNTS)
    calls = SimpleNamespace(
        stat=lambda path: SimpleNamespace(st_dev=DEVICES[path]), statvfs=statvfs
    )
    monkeypatch.setattr(file_systems, "os", calls)
    watching = FileSystemWatch()
    watching.tick()
    blocks["/dev/shm"] = 800
    watching.tick()
    used = (100 * 4096, 200 * 4096)
    assert watching.finish() == (FileSystem("/dev/shm", "tmpfs", 790 * 4096, used),)


def test_the_real_ones_can_be_read() -> None:
    watching = FileSystemWatch()
    watching.tick()
    watching.tick()
    assert all(len(one.used) == 2 for one in watching.finish())
