"""Users who attack root's `setup`, and each other, through their own folders.

The races are those that worked: an attacker swaps directories and links as fast as he can, or when
inotify(7) says that root has come by. He has folders as purebpf made them once, which were the
users' own, and all that he may do is his user's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.kernel.filters import pinned_setup, pinned_slots
from purebpf.kernel.host import pins
from purebpf.syscall import bpf
from tests.support.users import as_user, public_bpffs

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event", "vmlinux_btf")

ANN, BOB = 4711, 4712
LIBC = ctypes.CDLL(None, use_errno=True)
HERE = -100
EXCHANGE = 2
IN_OPEN = 0x20
FILES = ("program", "table", "counts", "lease")
TABLE_SIZE = 128 * 24
DIRECTORIES = 1000


@contextmanager
def doing(uid: int, work: Callable[[], Any]) -> Iterator[None]:
    """Let a user do something, for as long as the block lasts; it has begun when the block does."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os.dup2(writer, 0)
        with contextlib.suppress(OSError):
            work()
        os.write(writer, b"x")
        os._exit(0)
    try:
        assert select.select([reader], [], [], 20)[0]
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


def begun() -> None:
    """Let the block of `doing` begin."""
    os.write(0, b"x")


@pytest.fixture
def bpffs() -> Iterator[str]:
    """A slot each for Ann and Bob."""
    with public_bpffs() as folder:
        pinned_setup.pin(ANN, 1, folder)
        pinned_setup.pin(BOB, 1, folder)
        yield folder


@pytest.fixture
def of_root() -> Iterator[Path]:
    """A folder of root's with files that nobody else may touch."""
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


def swap(first: str, second: str) -> bool:
    done = LIBC.renameat2(HERE, first.encode(), HERE, second.encode(), EXCHANGE)
    return bool(done == 0)


def of_ann_and_bob(bpffs: str) -> list[list[bool]]:
    """Root looks at everybody's slots: which are whole."""

    def work() -> list[list[bool]]:
        shown = []
        for uid in (ANN, BOB):
            try:
                shown.append([not each.faults for each in pinned_slots.slots(uid, bpffs)])
            except OSError:
                shown.append([])
        return shown

    found = as_user(0, work)
    assert isinstance(found, list)
    return found


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
    assert of_ann_and_bob(bpffs)[1] == [True]
    pinned_setup.pin(ANN, 1, bpffs)
    assert of_ann_and_bob(bpffs) == [[True], [True]]
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
    assert of_ann_and_bob(bpffs) == [[True, True], [True]]


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
