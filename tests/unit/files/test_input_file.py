"""Files that a user names for reading: no command waits forever at a pipe."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from purebpf.files import input_file
from purebpf.files.input_file import open_input, open_seekable


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    path = tmp_path / "saved"
    os.mkfifo(path)
    return str(path)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_file, "_PATIENCE_S", 0.05)


@pytest.mark.usefixtures("_impatient")
def test_a_pipe_without_a_writer_is_given_up(pipe: str) -> None:
    with pytest.raises(OSError, match=input_file.NO_WRITER) as caught:
        open_input(pipe)
    assert caught.value.errno == errno.EPIPE


@pytest.mark.usefixtures("_impatient")
def test_a_slow_writer_is_waited_for(pipe: str) -> None:
    holder = os.open(pipe, os.O_RDWR)  # the writer is there, and has not written yet
    with open(pipe, "rb", opener=open_input) as file:
        assert os.get_blocking(file.fileno())
        writer = threading.Thread(target=os.write, args=(holder, b"a;b 1"))
        writer.start()
        assert file.read(5) == b"a;b 1"
        writer.join()
    os.close(holder)


def test_a_writer_that_comes_late_is_heard(pipe: str) -> None:
    writer = threading.Thread(target=Path(pipe).write_bytes, args=(b"a;b 1",))
    writer.start()
    with open(pipe, "rb", opener=open_input) as file:
        assert file.read() == b"a;b 1"
    writer.join()


def test_only_a_regular_file_is_seekable(pipe: str, tmp_path: Path) -> None:
    for path, number in ((pipe, errno.ESPIPE), ("/dev/null", errno.ESPIPE), ("/", errno.EISDIR)):
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            open_seekable(path)
        assert caught.value.errno == number
    path = tmp_path / "file"
    path.write_bytes(b"text")
    with open(path, "rb", opener=open_seekable) as file:
        assert file.read() == b"text"
