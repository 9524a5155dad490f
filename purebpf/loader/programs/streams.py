"""The streams that programs print to, and the kernel's reports about a program."""

from __future__ import annotations

import errno

from purebpf.errors import KernelError, NotSupportedError
from purebpf.syscall import bpf

__all__ = ["read_stream"]

_STREAMS = {"stdout": 1, "stderr": 2}
"""BPF_STDOUT and BPF_STDERR of include/uapi/linux/bpf.h."""

_PAGE = 1 << 12


def read_stream(fd: int, name: str) -> str:
    """All that is in a stream of the program `fd`: see `Program.read_stream`."""
    if name not in _STREAMS:
        raise ValueError(f"unknown stream {name!r}; known: {', '.join(_STREAMS)}")
    text = bytearray()
    page = bytearray(_PAGE)
    try:
        while count := bpf.prog_stream_read(fd, _STREAMS[name], page):
            text += page[:count]
    except KernelError as error:
        if error.errno != errno.EINVAL:
            raise
        reason = "this kernel does not have them (Linux 6.17)"
        raise NotSupportedError("streams of programs", reason) from None
    return text.decode(errors="replace")
