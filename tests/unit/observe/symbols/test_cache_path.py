"""A cache is used only where no other user can exchange a part of its path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from purebpf.observe.symbols.symbol_cache import own_directory

OTHER = 65534


def test_a_directory_above_that_others_may_write(tmp_path: Path) -> None:
    above = tmp_path / "above"
    (above / "own").mkdir(parents=True)
    assert own_directory(str(above / "own" / "cache"))
    above.chmod(0o777)
    assert not own_directory(str(above / "own" / "cache"))
    assert not own_directory(str(above / "own" / "other"))
    assert not (above / "own" / "other").exists()
    above.chmod(0o1777)  # as /tmp: others cannot rename what is ours
    assert own_directory(str(above / "own" / "cache"))


@pytest.mark.needs("chown")
def test_a_directory_above_of_another_user(tmp_path: Path) -> None:
    above = tmp_path / "above"
    (above / "own").mkdir(parents=True)
    os.chown(above, OTHER, OTHER)
    assert not own_directory(str(above / "own"))
    assert not own_directory(str(above / "own" / "cache"))


@pytest.mark.needs("chown")
def test_a_link_above(tmp_path: Path) -> None:
    (tmp_path / "real" / "own").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to("real")
    assert own_directory(str(link / "own"))
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    assert not own_directory(str(link / "own"))
    assert not own_directory(str(link / "own" / "cache"))
    (tmp_path / "ours").symlink_to("link/own")  # ours, which leads through theirs
    assert not own_directory(str(tmp_path / "ours" / "cache"))
