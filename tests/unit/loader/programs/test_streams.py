"""How a program's text is read: all of it, by the page."""

from __future__ import annotations

import errno

import pytest

from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.programs.streams import read_stream
from purebpf.syscall import bpf


def test_a_stream_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "é".encode() * 3000
    asked = []

    def give(fd: int, stream: int, buffer: bytearray) -> int:
        asked.append((fd, stream))
        start = sum(given)
        part = text[start : start + len(buffer)]
        buffer[: len(part)] = part
        given.append(len(part))
        return len(part)

    given: list[int] = []
    monkeypatch.setattr(bpf, "prog_stream_read", give)
    assert read_stream(7, "stderr") == "é" * 3000
    assert asked == [(7, 2)] * 3
    assert read_stream(7, "stdout") == ""


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBADF])
def test_what_the_kernel_refuses(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise KernelError("bpf(BPF_PROG_STREAM_READ_BY_FD)", number)

    monkeypatch.setattr(bpf, "prog_stream_read", refuse)
    kind = NotSupportedError if number == errno.EINVAL else KernelError
    with pytest.raises(kind, match=r"Linux 6\.17|EBADF"):
        read_stream(7, "stdout")
