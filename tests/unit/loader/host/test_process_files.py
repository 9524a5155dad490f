"""Files by the names that processes have for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from purebpf.errors import AttachError
from purebpf.loader.attach._common import probe_place
from purebpf.loader.attach._common.probe_place import find_file, in_process
from purebpf.loader.host import process_files
from purebpf.loader.host.process_files import mapped_path, probed_inode, root_of
from purebpf.syscall import proc

PID = 4711
ROOT = f"/proc/{PID}/root"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
FILES = {
    "/srv/shop": 1,
    LIBC: 2,
    "/opt/lib/libpq.so.5.15": 3,
    "/opt/lib/libpthread-2.31.so": 4,
    "/opt/lib/libssl.so.1.1": 5,
}


def map_files(monkeypatch: pytest.MonkeyPatch, paths: dict[str, int], root: str = ROOT) -> None:
    """Let the process have these files mapped, with these inodes, and be in this root."""
    lines = [
        f"{0x1000 * number:x}-{0x1000 * number + 0x1000:x} r-xp 00000000 08:01 {inode} {path}\n"
        for number, (path, inode) in enumerate(paths.items(), 1)
    ]
    there = {root + path: inode for path, inode in paths.items() if "(deleted)" not in path}
    monkeypatch.setattr(proc, "maps", lambda _: "".join(lines))
    monkeypatch.setattr(proc, "with_memory", lambda pid: pid)
    for module in (process_files, probe_place):
        monkeypatch.setattr(module, "root_of", lambda _: root)
        monkeypatch.setattr(
            module,
            "status_of",
            lambda path: SimpleNamespace(st_ino=there[path], st_mode=0) if path in there else None,
        )


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("libc.so.6", LIBC),
        ("libc.so", LIBC),
        ("libc", LIBC),
        ("c", LIBC),
        (LIBC, LIBC),
        ("shop", "/srv/shop"),
        ("libpq.so.5", "/opt/lib/libpq.so.5.15"),
        ("libpthread.so.0", "/opt/lib/libpthread-2.31.so"),
        ("pthread", "/opt/lib/libpthread-2.31.so"),
    ],
)
def test_names_of_mapped_files(monkeypatch: pytest.MonkeyPatch, name: str, path: str) -> None:
    for root in (ROOT, ""):
        map_files(monkeypatch, FILES, root)
        assert mapped_path(name, PID) == root + path
        assert in_process(name, PID) == root + path


@pytest.mark.parametrize(
    "name", ["libssl.so.3", "libm.so.6", "pq.so", "ssl.so.1", "sho", "/srv/sho"]
)
def test_files_that_are_not_mapped(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    map_files(monkeypatch, FILES)
    assert mapped_path(name, PID) == ""


@pytest.mark.parametrize("name", ["c", "libc", "libc.so.6", "libpthread.so.0", "m"])
def test_musl_is_one_file(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    musl = "/lib/ld-musl-x86_64.so.1"
    map_files(monkeypatch, {"/bin/busybox": 1, musl: 2})
    assert mapped_path(name, PID) == ROOT + musl
    assert mapped_path("libssl", PID) == ""


def test_a_file_that_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    map_files(monkeypatch, {"/srv/shop (deleted)": 1, LIBC: 2}, root="")
    for name in ("shop", "/srv/shop"):
        assert in_process(name, PID) == f"/proc/{PID}/map_files/1000-2000"
    # a library that was opened again after an upgrade
    map_files(monkeypatch, {f"{LIBC} (deleted)": 1, LIBC: 2}, root="")
    assert in_process("libc", PID) == LIBC


def test_the_path_of_another_inode_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    map_files(monkeypatch, FILES)
    monkeypatch.setattr(process_files, "status_of", lambda _: SimpleNamespace(st_ino=99))
    assert mapped_path("libc", PID) == f"/proc/{PID}/map_files/2000-3000"


def test_a_library_that_another_root_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    map_files(monkeypatch, FILES)
    with pytest.raises(
        AttachError, match=rf"libm\.so\.6 .* of process {PID}, which has not mapped"
    ):
        in_process("libm.so.6", PID)
    map_files(monkeypatch, FILES, root="")
    assert in_process("libm.so.6", PID) == "libm.so.6"  # it may come later
    assert in_process("./shop", PID) == "./shop"


def test_our_own_process_and_one_that_is_gone() -> None:
    assert root_of(os.getpid()) == ""
    assert root_of(2**22 + 1) == ""
    assert mapped_path("libc", 2**22 + 1) == ""
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    assert find_file("libc", "it", 0) in mapped
    assert find_file("libc", "it", 2**22 + 1) == find_file("libc", "it")


def test_no_file_system_is_asked_for_the_root_of_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be a FUSE of another user that never answers."""

    def refuse(path: str) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(os, "readlink", lambda path: "/" if path.startswith("/proc/self") else path)
    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(proc, "with_memory", lambda pid: pid)
    assert root_of(PID) == ROOT


def test_a_link_below_another_root_is_followed_in_that_root(tmp_path: Path) -> None:
    """The kernel follows absolute links from our own root directory."""
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/tool").write_bytes(b"inside")
    (tmp_path / "tool").symlink_to("/opt/tool")
    code = f"import os, time; os.chroot({str(tmp_path)!r}); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            pytest.skip("chroot(2) needs CAP_SYS_CHROOT")
        assert root_of(process.pid) == f"/proc/{process.pid}/root"
        path = in_process("/tool", process.pid)
        assert find_file(path, "it") == path
        with probe_place.opened_regular(path) as fd:
            assert os.read(fd, 9) == b"inside"
        process.kill()


def test_only_overlayfs_hides_the_device_of_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, identity = str(tmp_path), (7, 8, 9)
    assert probed_inode(path, identity) == identity
    assert probed_inode(f"{path}/none", identity) == identity
    monkeypatch.setattr(process_files, "file_system_of", lambda _: 0x794C7630)
    assert probed_inode(path, identity) == (0, 8, 9)
