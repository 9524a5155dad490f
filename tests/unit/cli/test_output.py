"""Files appear complete or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from purebpf.cli.output import Output
from purebpf.errors import KernelError


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    with Output(str(target)) as output:
        output.write(["one\n", "two\n"])
        assert target.read_text() == "old"
    assert target.read_text() == "one\ntwo\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failed_run_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    output = Output(str(target))
    output.write(["half"])
    output.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_link_keeps_pointing_at_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    with Output(str(tmp_path / "link")) as output:
        output.write(["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_wrong_path_is_known_at_once(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"missing/out.*open\(2\) failed with ENOENT"):
        Output(str(tmp_path / "missing" / "out"))


def test_a_device_is_written_to_and_stays_one() -> None:
    with Output(os.devnull) as output:
        output.write(["text"])
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with Output(str(fifo)) as output:
        os.close(reader)
        output.write(["text"])
        output.write(["more"])


def test_names_that_no_encoding_has_are_escaped(tmp_path: Path) -> None:
    with Output(str(tmp_path / "out")) as output:
        output.write(["\udcff"])
    assert (tmp_path / "out").read_bytes() == b"\\udcff"


@pytest.mark.parametrize(
    ("path", "reason"), [("", "ENOENT"), (".", "EISDIR"), ("old/", "ENOTDIR|EISDIR")]
)
def test_an_impossible_file_name_is_refused_at_once(
    path: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "old").write_text("old")
    monkeypatch.chdir(work)
    with pytest.raises(KernelError, match=rf"open\(2\) failed with ({reason})"):
        Output(path)
    assert [each.name for each in tmp_path.rglob("*")] == ["work", "old"]


def test_a_file_that_may_not_be_written_is_known_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # chattr +i: of root, too
    with pytest.raises(KernelError, match=r"open\(2\) failed with EACCES"):
        Output(str(target))
    assert os.listdir(tmp_path) == ["out"]


def test_a_rename_that_fails_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "out"
    output = Output(str(target))
    target.mkdir()
    with pytest.raises(KernelError, match=r"rename\(2\) failed with EISDIR"), output:
        output.write(["text"])
    assert os.listdir(tmp_path) == ["out"]


def test_a_file_keeps_its_owner_and_mode(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.touch()
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 65534, 65534)
    before = target.stat()
    with Output(str(target)) as output:
        output.write(["text"])
    after = target.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert target.read_text() == "text"


def test_where_the_owner_cannot_be_kept_no_other_user_gains_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "")

    monkeypatch.setattr(os, "fchown", refused)
    for old, new in ((0o4664, 0o644), (0o660, 0o600), (0o600, 0o600), (0o644, 0o644)):
        target = tmp_path / "out"
        target.touch()
        target.chmod(old)
        with Output(str(target)):
            pass
        assert target.stat().st_mode & 0o7777 == new
