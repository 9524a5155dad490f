"""Files appear complete or not at all."""

from __future__ import annotations

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


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
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
