"""Users who attack root's `setup`, and each other, through their own folders.

The races are those that worked: an attacker swaps directories and links as fast as he can, or when
inotify(7) says that root has come by. He has folders as purebpf made them once, which were the
users' own, and all that he may do is his user's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import KernelError
from purebpf.filter import parse
from purebpf.loader.host import pins
from purebpf.observe.filters import pinned_setup, pinned_slots
from purebpf.observe.filters.sample_filter import SampleFilter
from purebpf.syscall import bpf
from tests.support.host.attackers import begun, doing, refused, swap, whole_slots
from tests.support.host.users import as_user, public_bpffs

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event", "vmlinux_btf")

ANN, BOB = 4711, 4712
WHERE = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR
LIBC = ctypes.CDLL(None, use_errno=True)
IN_OPEN = 0x20
FILES = ("program", "table", "counts", "lease")
TABLE_SIZE = 128 * 24
DIRECTORIES = 1000


@pytest.fixture
def bpffs() -> Iterator[str]:
    """A slot each for Ann and Bob."""
    with public_bpffs() as folder:
        pinned_setup.pin(ANN, 1, folder)
        pinned_setup.pin(BOB, 1, folder)
        yield folder


@pytest.fixture
def of_root() -> Iterator[Path]:
    """A folder of root's, with names as in Ann's slot, that no user may touch."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        for file in FILES:
            (place / file).write_text("root's")
            (place / file).chmod(0o600)
        (place / "many").mkdir(0o600)
        yield place


def untouched(place: Path) -> bool:
    found = [each.stat() for each in sorted(place.iterdir())]
    return [(each.st_uid, stat.S_IMODE(each.st_mode)) for each in found] == [(0, 0o600)] * 5


def own(bpffs: str) -> str:
    """Make Ann's folder hers, as it was in the first layout, with her slot's files."""
    folder = f"{bpffs}/purebpf/filter/{ANN}"
    for place in (folder, f"{folder}/0"):
        os.chown(place, ANN, ANN)
        os.chmod(place, 0o700)
    return folder


def test_a_table_that_pretends_to_be_the_lease(bpffs: str) -> None:
    """Root looked up 16 bytes in a map with values of 3,072, and they went all over its heap."""
    folder = own(bpffs)

    def attack() -> None:
        slot = f"{folder}/0"
        with pins.open_map(f"{slot}/table") as table:
            bpf.map_update_elem(table.fileno(), struct.pack("=I", 0), b"A" * TABLE_SIZE)
        os.unlink(f"{slot}/lease")
        os.rename(f"{slot}/table", f"{slot}/lease")

    as_user(ANN, attack)
    assert whole_slots(bpffs, ANN, BOB)[1] == [True]
    pinned_setup.pin(ANN, 1, bpffs)
    assert whole_slots(bpffs, ANN, BOB) == [[True], [True]]
    assert pinned_setup.unpin(ANN, bpffs)
    assert pinned_setup.unpin(BOB, bpffs)
    assert not os.path.exists(f"{bpffs}/purebpf")


@pytest.mark.parametrize("attempt", range(4))
def test_links_that_are_swapped_in_while_root_pins(bpffs: str, of_root: Path, attempt: int) -> None:
    """A file of root's became the user's: chmod and chown by path followed the link."""
    folder = own(bpffs)

    def attack() -> None:
        os.symlink(of_root / "lease", f"{folder}/link")
        os.mkdir(f"{folder}/mine", 0o700)
        begun()
        end = time.monotonic() + 10
        while not swap(f"{folder}/1", f"{folder}/mine") and time.monotonic() < end:
            pass
        while not swap(f"{folder}/1/program", f"{folder}/link") and time.monotonic() < end:
            pass

    with doing(ANN, attack), contextlib.suppress(OSError):
        time.sleep(attempt / 100)
        pinned_setup.pin(ANN, 2, bpffs)
    assert untouched(of_root)
    pinned_setup.pin(ANN, 2, bpffs)
    assert whole_slots(bpffs, ANN, BOB) == [[True, True], [True]]


@pytest.mark.parametrize("attempt", range(3))
def test_a_folder_that_is_swapped_for_a_link_while_root_unpins(
    bpffs: str, of_root: Path, attempt: int
) -> None:
    """Files of root's were deleted: os.walk() and unlink(2) by path went through the link."""
    folder = own(bpffs)

    def attack() -> None:
        os.mkdir(f"{folder}/0/many")
        for number in range(DIRECTORIES):
            os.mkdir(f"{folder}/0/many/{number}")
        os.symlink(of_root, f"{folder}/link")
        watch = LIBC.inotify_init()
        LIBC.inotify_add_watch(watch, f"{folder}/0/many".encode(), IN_OPEN)
        begun()
        select.select([watch], [], [], 20)
        time.sleep(attempt / 1000)
        swap(f"{folder}/0", f"{folder}/link")

    with doing(ANN, attack), contextlib.suppress(OSError):
        pinned_setup.unpin(ANN, bpffs)
    assert untouched(of_root)
    pinned_setup.unpin(ANN, bpffs)
    assert pinned_slots.users(bpffs) == (BOB,)


def test_a_user_changes_nothing_of_his_folders(bpffs: str) -> None:
    folder = f"{bpffs}/purebpf/filter/{ANN}"
    attempts = [
        lambda: os.chmod(folder, 0o777),
        lambda: os.chmod(f"{folder}/0", 0o777),
        lambda: os.mkdir(f"{folder}/1"),
        lambda: os.mkdir(f"{folder}/0/opt"),
        lambda: os.symlink("/etc", f"{folder}/0/link"),
        lambda: os.rename(f"{folder}/0/table", f"{folder}/0/lease"),
        lambda: os.rename(f"{folder}/0", f"{folder}/1"),
        lambda: os.unlink(f"{folder}/0/lease"),
        lambda: os.rmdir(f"{folder}/0"),
        lambda: os.listdir(folder),
        lambda: os.listdir(f"{folder}/0"),
        lambda: os.listdir(f"{bpffs}/purebpf/filter"),
    ]
    assert set(as_user(ANN, lambda: refused(attempts))) <= {"EACCES", "EPERM"}


@pytest.mark.needs("pinned_by_users")
def test_a_user_cannot_take_the_lock_of_another_user_s_slot(bpffs: str) -> None:
    """Each process that can open a file or folder can flock(2) it, and so keep it from its user."""
    folder = f"{bpffs}/purebpf/filter/{ANN}"
    files = [folder, f"{folder}/0", *(f"{folder}/0/{name}" for name in FILES)]

    def work() -> list[str]:
        os.setgroups([])
        os.setgid(ANN)  # as if both were in one group
        os.setuid(BOB)
        return refused([lambda file=file: os.open(file, os.O_RDONLY) for file in files])

    assert set(as_user(0, work)) == {"EACCES"}


@pytest.mark.needs("pinned_by_users")
@pytest.mark.parametrize("part", ["purebpf", "purebpf/filter"])
def test_a_folder_that_another_user_made_first(part: str) -> None:
    """A bpf file system that was mounted without a mode lets everybody make folders in it."""
    with public_bpffs() as folder:
        os.chmod(folder, 0o1777)
        if part == "purebpf":
            as_user(BOB, lambda: os.mkdir(f"{folder}/purebpf"))
        else:
            os.mkdir(f"{folder}/purebpf")
            os.mkdir(f"{folder}/{part}")
            os.chown(f"{folder}/{part}", BOB, BOB)
        with pytest.raises(KernelError, match=rf"belongs to UID {BOB}.*rm -r {folder}/{part}"):
            pinned_setup.pin(ANN, 1, folder)
        with pytest.raises(KernelError, match=f"belongs to UID {BOB}"):
            pinned_slots.users(folder)
        with pytest.raises(KernelError, match=f"belongs to UID {BOB}"):
            pinned_setup.unpin(ANN, folder)
        assert os.stat(f"{folder}/{part}").st_uid == BOB


@pytest.mark.needs("pinned_by_users")
def test_a_user_trusts_no_folder_of_another_user_s(bpffs: str) -> None:
    """The one who owned a folder above read and emptied the filter of a running recording."""

    def work() -> str:
        # not pid, which programs before Linux 6.3 cannot read in a container
        with SampleFilter(parse("ip > 1"), WHERE, bpffs=bpffs) as chosen:
            return chosen.why_user_space

    assert as_user(ANN, work) == ""
    for part in ("purebpf", "purebpf/filter", f"purebpf/filter/{ANN}", f"purebpf/filter/{ANN}/0"):
        before = os.stat(f"{bpffs}/{part}")
        os.chown(f"{bpffs}/{part}", BOB, BOB)
        assert f"it belongs to UID {BOB}, not to root" in as_user(ANN, work)
        os.chown(f"{bpffs}/{part}", before.st_uid, before.st_gid)
        os.chmod(f"{bpffs}/{part}", 0o777)
        assert re.search("other users can write to it|it has mode 0777", as_user(ANN, work))
        os.chmod(f"{bpffs}/{part}", before.st_mode)
    assert as_user(ANN, work) == ""


@pytest.mark.parametrize("mode", [0o777, 0o722])
def test_a_file_system_where_others_can_rename_is_not_used(mode: int) -> None:
    with public_bpffs() as folder:
        os.chmod(folder, mode)
        with pytest.raises(KernelError, match=rf"other users can write to it \(mode {mode:04o}\)"):
            pinned_setup.pin(ANN, 1, folder)
        assert "purebpf" not in os.listdir(folder)
