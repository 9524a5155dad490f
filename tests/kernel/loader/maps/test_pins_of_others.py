"""Pins in directories of other users: not shared by name, and never a way to other files."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import KernelError
from purebpf.loader.host import pins
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from tests.support.host.attackers import begun, doing, swap
from tests.support.host.users import as_user, public_bpffs

pytestmark = pytest.mark.needs("bpf", "bpffs")

ANN = 4711
COUNTS = MapSpec("counts", bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1)


@pytest.fixture
def bpffs() -> Iterator[str]:
    """A bpf file system as `mount -t bpf` makes it: everybody may add to it."""
    with public_bpffs() as folder:
        os.chmod(folder, 0o1777)
        yield folder


def test_a_map_of_another_user_is_not_shared_by_name(bpffs: str) -> None:
    path = f"{bpffs}/counts"
    with Map.create(COUNTS) as theirs:
        theirs.pin(path)
        os.chown(path, ANN, ANN)
    with pytest.raises(KernelError, match=rf"it belongs to UID {ANN}, not to root") as caught:
        Map.shared(COUNTS, path)
    assert caught.value.errno == errno.EPERM
    assert "Map.open(path)" in str(caught.value)
    with Map.open(path) as found:
        assert found.info.value_size == 8


def test_a_map_in_a_directory_of_another_user_is_not_shared_by_name(bpffs: str) -> None:
    os.mkdir(f"{bpffs}/theirs", 0o755)
    path = f"{bpffs}/theirs/counts"
    Map.shared(COUNTS, path).close()
    Map.shared(COUNTS, path).close()
    os.chown(f"{bpffs}/theirs", ANN, ANN)
    with pytest.raises(KernelError, match=rf"theirs: .* it belongs to UID {ANN}"):
        Map.shared(COUNTS, path)
    os.chown(f"{bpffs}/theirs", 0, 0)
    os.chmod(f"{bpffs}/theirs", 0o777)
    with pytest.raises(KernelError, match=r"theirs: .* other users can write to it \(mode 0777\)"):
        Map.shared(COUNTS, path)


def test_a_directory_farther_up_is_looked_at_too(bpffs: str) -> None:
    os.makedirs(f"{bpffs}/theirs/ours", 0o755)
    os.symlink(f"{bpffs}/theirs", f"{bpffs}/short")
    for path in (f"{bpffs}/theirs/ours/counts", f"{bpffs}/short/ours/counts"):
        os.chown(f"{bpffs}/theirs", 0, 0)
        Map.shared(COUNTS, path).close()
        os.chown(f"{bpffs}/theirs", ANN, ANN)
        with pytest.raises(KernelError, match=rf"{bpffs}/theirs: .*it belongs to UID {ANN}"):
            Map.shared(COUNTS, path)


def test_a_link_of_another_user_leads_to_no_shared_map(bpffs: str) -> None:
    with Map.create(COUNTS) as other:
        other.pin(f"{bpffs}/other")
    as_user(ANN, lambda: os.symlink(f"{bpffs}/other", f"{bpffs}/counts"))
    with pytest.raises(KernelError, match=rf"it belongs to UID {ANN}"):
        Map.shared(COUNTS, f"{bpffs}/counts")


def test_a_link_of_another_user_on_the_way_is_not_followed(bpffs: str) -> None:
    """Though it leads to where only root writes."""
    os.mkdir(f"{bpffs}/ours", 0o755)
    Map.shared(COUNTS, f"{bpffs}/ours/counts").close()
    as_user(ANN, lambda: os.symlink(f"{bpffs}/ours", f"{bpffs}/app"))
    with pytest.raises(KernelError, match=rf"{bpffs}/app: .*it belongs to UID {ANN}"):
        Map.shared(COUNTS, f"{bpffs}/app/counts")


@pytest.mark.parametrize("attempt", range(3))
def test_unpinning_removes_the_pin_and_nothing_else(bpffs: str, attempt: int) -> None:
    """The directory of the pin is swapped for a link to one of root's, as fast as can be."""
    os.mkdir(f"{bpffs}/theirs")
    os.chown(f"{bpffs}/theirs", ANN, ANN)
    with tempfile.TemporaryDirectory() as name, Map.create(COUNTS) as counts:
        victim = Path(name) / "counts"
        victim.write_text("root's")

        def attack() -> None:
            os.symlink(name, f"{bpffs}/link")
            begun()
            end = time.monotonic() + 20
            while time.monotonic() < end:
                swap(f"{bpffs}/theirs", f"{bpffs}/link")

        with doing(ANN, attack):
            for _ in range(200):
                with contextlib.suppress(KernelError):
                    pins.unpin(pins.pin(counts.fileno(), f"{bpffs}/theirs/counts"))
            assert victim.read_text() == "root's"


def test_what_came_in_the_place_of_a_pin_stays(bpffs: str) -> None:
    path = f"{bpffs}/counts"
    with bpf.map_create(bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1) as array:
        pinned = pins.pin(array.fileno(), path)
        os.unlink(path)
        again = pins.pin(array.fileno(), path)
        assert not pins.unpin(pinned)
        assert os.path.exists(path)
        assert pins.unpin(again)
        assert not os.path.exists(path)
        assert not pins.unpin(again)
        os.mkdir(f"{bpffs}/gone")
        pinned = pins.pin(array.fileno(), f"{bpffs}/gone/counts")
        os.unlink(f"{bpffs}/gone/counts")
        os.rmdir(f"{bpffs}/gone")
        assert not pins.unpin(pinned)
