"""What another user tries with a store of root: to move where files are made and removed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.services.fleet.compaction import compact
from purebpf.services.fleet.importing import import_files
from purebpf.services.fleet.keeping import prune
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.stores.store import Store, StoreError
from purebpf.services.fleet.symbolize import symbolize

pytestmark = [
    pytest.mark.any_kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user, too"),
]

OTHER = 65534


def no_files(build_id: str) -> None:
    """No server has debug files."""


WRITES: dict[str, Callable[[Store], object]] = {
    "hub": lambda store: store.prepare(),
    "import": lambda store: import_files(store, []),
    "compact": lambda store: compact(store, now_s=time.time(), say=lambda hour: None),
    "prune": lambda store: prune(store, 0, time.time()),
    "symbolize": lambda store: symbolize(store, 0, 1, no_files),
}
"""Each command that writes to a store, or deletes from it."""


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest) -> Callable[[Store], object]:
    """One of them."""
    return WRITES[request.param]


def test_nothing_is_removed_through_the_store_of_another_user(
    write: Callable[[Store], object], tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "2026-11-20T10.json").write_text("precious")
    store = tmp_path / "store"
    store.mkdir()
    (store / "hours").symlink_to(precious)
    os.chown(store, OTHER, OTHER)
    with pytest.raises(StoreError, match=rf"belongs to UID {OTHER}.*run as its owner: sudo -u '#"):
        write(Directory(str(store)))
    assert [path.name for path in precious.iterdir()] == ["2026-11-20T10.json"]
    assert [path.name for path in store.iterdir()] == ["hours"]


def test_a_store_below_a_directory_that_others_can_exchange_is_refused(
    write: Callable[[Store], object], tmp_path: Path
) -> None:
    above = tmp_path / "above"
    store = above / "store"
    store.mkdir(parents=True)
    above.chmod(0o777)
    with pytest.raises(StoreError, match="other users can write to it"):
        write(Directory(str(store)))
    assert not list(store.iterdir())


def test_a_link_of_another_user_leads_to_no_store(
    write: Callable[[Store], object], tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "store"
    link.symlink_to(tmp_path / "real")
    os.lchown(link, OTHER, OTHER)
    with pytest.raises(StoreError, match=f"belongs to UID {OTHER}"):
        write(Directory(str(link)))
    assert not list((tmp_path / "real").iterdir())


@pytest.mark.parametrize("group", [os.getegid(), OTHER])
def test_a_group_shares_its_store(
    write: Callable[[Store], object], group: int, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    os.chown(store, -1, group)
    store.chmod(0o2775)
    if group != OTHER:
        write(Directory(str(store)))
        return
    with pytest.raises(StoreError, match="other users can write to it"):
        write(Directory(str(store)))


def test_nothing_is_made_where_others_can_exchange_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError, match="other users can write to it"):
        Directory(str(tmp_path / "new" / "store")).prepare()
    assert not list(tmp_path.iterdir())


def test_a_link_of_root_is_followed(write: Callable[[Store], object], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "real")
    write(Directory(str(tmp_path / "store")))
