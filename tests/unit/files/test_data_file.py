"""A binary result appears when it is complete, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from purebpf.errors import KernelError, NotSupportedError
from purebpf.files.binary_file import DataFile


def test_it_appears_when_it_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(b"old")
    with DataFile(str(path)) as file:
        file.write(b"....data")
        file.seek(0)
        file.write(memoryview(b"head"))
        assert path.read_bytes() == b"old"
        file.commit()
    assert path.read_bytes() == b"headdata"
    assert os.listdir(tmp_path) == ["perf.data"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_a_commit_there_is_nothing(tmp_path: Path) -> None:
    with DataFile(str(tmp_path / "perf.data")) as file:
        file.write(b"half")
    assert os.listdir(tmp_path) == []


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with DataFile(str(tmp_path / "link")) as file:
        file.write(b"x")
        file.commit()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("path", "said"), [("/dev/null", "not a pipe or device"), (".", "not a pipe or device")]
)
def test_what_cannot_be_written_to_at_any_place(path: str, said: str) -> None:
    with pytest.raises(NotSupportedError, match=said):
        DataFile(path)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "")

    path = tmp_path / "perf.data"
    path.write_bytes(b"old")
    with DataFile(str(path)) as file:
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(
            KernelError, match=r"write\(2\) failed with ENOSPC\. No space left on device"
        ):
            file.write(b"x")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["perf.data"]


def test_what_is_worth_keeping_survives_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "")

    path = tmp_path / "perf.data"
    path.write_bytes(b"old")
    with DataFile(str(path)) as file:
        file.write(b"new")
        file.is_worth_keeping = True
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(KernelError) as raised:
            file.write(b"x")
    (left,) = tmp_path.glob("perf.data.*.part")
    assert raised.value.fix == f"What was recorded until then is in {left}"
    assert left.read_bytes() == b"new"
    assert path.read_bytes() == b"old"


def test_a_missing_directory_is_known_at_once(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"open\(2\) failed with ENOENT"):
        DataFile(str(tmp_path / "no" / "perf.data"))
