"""Directories that killed processes left are removed, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from purebpf.services.fleet.scratch import remove_abandoned, scratch_folder

HOLDS = """
import sys
from purebpf.services.fleet.scratch import scratch_folder
with scratch_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_process_that_is_killed_leaves_one_that_the_next_removes(tmp: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        folder = Path(process.stdout.readline().strip())
        (folder / "spilled").mkdir()
        (folder / "spilled" / "block").write_bytes(b"spilled")
        assert remove_abandoned() == 0, "its process lives"
        assert folder.parent == tmp
        assert folder.is_dir()
        process.kill()
    assert folder.is_dir()
    assert remove_abandoned() == 1
    assert not list(tmp.iterdir())


def test_nothing_is_removed_by_its_name_alone(tmp: Path) -> None:
    (tmp / "purebpf-fleet-mine").mkdir()
    (tmp / "purebpf-fleet-mine" / "precious").touch()
    (tmp / "precious").mkdir()
    (tmp / "precious" / "lock").touch()
    (tmp / "purebpf-fleet-link").symlink_to(tmp / "precious")
    (tmp / "purebpf-fleet-linked").mkdir()
    (tmp / "purebpf-fleet-linked" / "lock").symlink_to(tmp / "precious" / "lock")
    (tmp / "purebpf-fleet-piped").mkdir()
    os.mkfifo(tmp / "purebpf-fleet-piped" / "lock")
    (tmp / "purebpf-fleet-file").touch()
    before = sorted(tmp.rglob("*"))
    assert remove_abandoned() == 0
    assert sorted(tmp.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_directories_of_others_stay(tmp: Path) -> None:
    folder = tmp / "purebpf-fleet-other"
    folder.mkdir()
    (folder / "lock").touch()
    os.chown(folder, 65534, 65534)
    assert remove_abandoned() == 0
    os.chown(folder, 0, 0)
    os.chown(folder / "lock", 65534, 65534)
    assert remove_abandoned() == 0


def test_links_inside_are_not_followed(tmp: Path) -> None:
    (tmp / "precious").mkdir()
    (tmp / "precious" / "file").touch()
    folder = tmp / "purebpf-fleet-dead"
    folder.mkdir()
    (folder / "lock").touch()
    (folder / "spilled").symlink_to(tmp / "precious")
    assert remove_abandoned() == 1
    assert (tmp / "precious" / "file").exists()


def test_the_own_one_goes_with_its_block(tmp: Path) -> None:
    with scratch_folder() as folder:
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        assert remove_abandoned() == 0
    assert not list(tmp.iterdir())
