"""Files in a file system of another user (FUSE) that never answers: nothing of them is read."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from purebpf.errors import errno_name
from purebpf.files import path_steps
from purebpf.files.fuse_mounts import foreign_mounts
from purebpf.files.path_steps import open_place
from purebpf.files.regular_file import opened_regular
from purebpf.observe.symbols.elf_files import ElfFiles, Problem
from purebpf.observe.symbols.mapped_files import mapped_status, open_mapped
from purebpf.symbols.frame import Reason
from purebpf.symbols.proc_maps import Mapping, parse_maps
from tests.support.host.attackers import begun, doing, swap
from tests.support.host.silent_fuse import silent

HEAD = "67 45 0:39 / /tmp/a\\040b rw,nosuid - fuse"


@pytest.fixture
def mapping() -> Iterator[tuple[int, Mapping]]:
    """A PID, and what it has mapped of the silent file."""
    with silent("file") as pid:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # who waits after all is woken, and fails: not even SIGKILL would end it
        timer = threading.Timer(10, lambda: os.kill(int(children[0]), signal.SIGKILL))
        timer.start()
        try:
            text = Path(f"/proc/{pid}/maps").read_text()
            (found,) = (part for part in parse_maps(text) if part.file.path.endswith("/f"))
            yield pid, found
        finally:
            timer.cancel()


@pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="there is no /dev/fuse")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts for another user")
def test_a_file_that_never_answers_is_not_waited_for(mapping: tuple[int, Mapping]) -> None:
    pid, file = mapping
    place = f"/proc/{pid}/map_files/{file.start:x}-{file.end:x}"
    for path in (place, f"/proc/{pid}/root{file.file.path}"):
        with pytest.raises(PermissionError), opened_regular(path) as fd:
            os.pread(fd, 64, 0)
    assert mapped_status(file, pid) is None
    assert ElfFiles().functions(file, (pid,)) == Problem(Reason.UNREADABLE, "EACCES")
    with pytest.raises(FileNotFoundError):
        open_mapped(file, (pid,))


TRIES = 4000


def open_many(pid: int, path: str) -> list[str]:
    """How each open ends while the path is exchanged; nothing if one of them waits."""
    begun, writer = os.pipe()
    if not os.fork():
        ends = []
        for _ in range(TRIES):
            try:
                with opened_regular(f"/proc/{pid}/root{path}"):
                    ends.append("opened")
            except OSError as error:
                ends.append(errno_name(error.errno or 0))
        os.write(writer, json.dumps(ends).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(begun) as file:
        read: list[str] = json.loads(file.read() or "[]")
    return read


@pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="there is no /dev/fuse")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts for another user")
@pytest.mark.parametrize("part", ["link", "directory"])
def test_a_swapped_link_is_not_followed(
    mapping: tuple[int, Mapping], tmp_path: Path, part: str
) -> None:
    pid, file = mapping
    mount = os.path.relpath(os.path.dirname(file.file.path), tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "here/g").write_bytes(b"x")
    good, bad = ("here/g", f"{mount}/g") if part == "link" else ("here", mount)
    (tmp_path / "one").symlink_to(good)
    (tmp_path / "other").symlink_to(bad)

    def exchange() -> None:
        begun()
        while swap(f"{tmp_path}/one", f"{tmp_path}/other"):
            pass

    with doing(0, exchange):
        ends = open_many(pid, f"{tmp_path}/one" + ("/g" if part == "directory" else ""))
    assert len(ends) == TRIES
    assert set(ends) == {"opened", "EACCES"}


@pytest.fixture
def fusectl() -> Iterator[None]:
    """Its connections, as systemd mounts them; at their place, where nothing else can be."""
    place = "/sys/fs/fuse/connections"
    if os.path.ismount(place):
        yield
        return
    subprocess.run(["mount", "-t", "fusectl", "fusectl", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="there is no /dev/fuse")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts for another user")
@pytest.mark.skipif(shutil.which("nsenter") is None, reason="there is no nsenter")
@pytest.mark.usefixtures("fusectl")
def test_a_file_of_a_detached_mount_is_not_waited_for(mapping: tuple[int, Mapping]) -> None:
    pid, file = mapping
    mount = os.path.dirname(file.file.path)
    subprocess.run(["nsenter", "-t", str(pid), "-m", "umount", "-l", mount], check=True)
    assert f" {mount} " not in Path(f"/proc/{pid}/mountinfo").read_text()
    with (
        pytest.raises(PermissionError),
        opened_regular(f"/proc/{pid}/map_files/{file.start:x}-{file.end:x}") as fd,
    ):
        os.pread(fd, 64, 0)
    assert mapped_status(file, pid) is None


@pytest.mark.parametrize(
    ("mount", "count"),
    [
        (f"{HEAD} x rw,user_id=4711,group_id=4711,allow_other", 1),
        (f"{HEAD}.sshfs x rw,user_id=4711,group_id=4711,allow_other", 1),
        (f"{HEAD} x rw,user_id=4711,group_id=4711", 0),  # root is kept out by the kernel
        (f"{HEAD} x rw,user_id=0,group_id=0,allow_other", 0),
        (re.sub("fuse", "ext4", HEAD) + " x rw,user_id=4711,allow_other", 0),
    ],
)
def test_which_mounts_are_those_of_others(mount: str, count: int) -> None:
    mounts = foreign_mounts(mount + "\n")
    assert len(mounts) == count
    assert not count or mounts == {67: "/tmp/a b"}


NAMES = """a/b/file up/file up/../b/./file whole up ../../../../../.. loop gone a/b/file/x
up/nothing"""


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("name", NAMES.split())
def test_steps_lead_where_the_kernel_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, follow: bool
) -> None:
    monkeypatch.setattr(path_steps, "may_meet_one", lambda path: True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("x")
    (tmp_path / "up").symlink_to("a/b/../b/")
    (tmp_path / "whole").symlink_to(f"{tmp_path}/up//file")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("nothing")
    before = os.listdir("/proc/self/fd")
    expected = inode(lambda: os.open(name, os.O_PATH | (0 if follow else os.O_NOFOLLOW)))
    for path in (name, f"{tmp_path}/{name}", f"/proc/self/root{tmp_path}/{name}"):
        assert inode(partial(open_place, path, follow=follow)) == expected
    assert os.listdir("/proc/self/fd") == before


def inode(opening: Callable[[], int]) -> int | str:
    """Of what is opened, or why nothing is."""
    try:
        fd = opening()
    except OSError as error:
        return errno_name(error.errno or 0)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)
