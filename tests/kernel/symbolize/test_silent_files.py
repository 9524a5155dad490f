"""Files in a file system of another user (FUSE) that never answers: nothing of them is read."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.kernel.host.fuse_mounts import enters_one, foreign_mounts
from purebpf.kernel.host.regular_file import opened_regular
from purebpf.kernel.symbolize.elf_files import ElfFiles, Problem, mapped_status, open_mapped
from purebpf.symbols.frame import Reason
from purebpf.symbols.proc_maps import Mapping, parse_maps
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


def test_a_path_that_enters_one_is_known_before_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "to").symlink_to("beside/../mount/")
    (tmp_path / "loop").symlink_to("loop")
    mounts = {67: f"{tmp_path}/mount"}
    assert enters_one(f"{tmp_path}/mount/f", mounts)
    assert enters_one(f"/proc/self/root{tmp_path}/to/f", mounts)
    assert enters_one(f"{tmp_path}/loop/f", mounts)
    assert not enters_one(f"{tmp_path}/mounted/f", mounts)
    assert not enters_one(f"{tmp_path}/beside/f", mounts)
