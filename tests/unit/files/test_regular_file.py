"""Files that another process names are opened if they are regular, and not touched otherwise."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from purebpf.files.regular_file import open_regular, opened_regular


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The flags of each open that is more than an O_PATH descriptor."""
    real = os.open
    flags: list[int] = []

    def record(path: str, wanted: int, *arguments: int, **options: int) -> int:
        if not wanted & os.O_PATH:
            flags.append(wanted)
        return real(path, wanted, *arguments, **options)

    monkeypatch.setattr(os, "open", record)
    return flags


def test_a_file_is_opened_also_through_a_link(tmp_path: Path, opened: list[int]) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with opened_regular(str(tmp_path / name)) as fd:
            assert os.read(fd, 9) == b"text"
    assert len(opened) == 2
    assert all(flags & os.O_NONBLOCK for flags in opened)


def test_what_is_not_a_regular_file_is_never_opened(tmp_path: Path, opened: list[int]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path in ("/dev/null", "/dev/tty", "/dev/fd/0", tmp_path, tmp_path / "pipe", "/dev/zero"):
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with pytest.raises(FileNotFoundError):
                open_regular(str(path))
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "link"))
    assert opened == []


def test_a_link_where_none_may_be(tmp_path: Path, opened: list[int]) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "link"), follow=False)
    assert opened == []
    os.close(open_regular(str(tmp_path / "file"), follow=False))
    assert len(opened) == 1


def test_what_is_exchanged_after_the_check_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is exchanged for a pipe between the check and the open: the file is read."""
    path = tmp_path / "file"
    path.write_bytes(b"text")
    real = os.fstat

    def exchange(fd: int) -> os.stat_result:
        found = real(fd)
        path.unlink()
        os.mkfifo(path)
        return found

    monkeypatch.setattr(os, "fstat", exchange)
    with opened_regular(str(path)) as fd:
        assert os.read(fd, 9) == b"text"
