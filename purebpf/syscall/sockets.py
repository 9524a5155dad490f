"""Programs of sockets: setsockopt(2) with SO_ATTACH_BPF and its relatives (socket(7))."""

from __future__ import annotations

import os
import socket

from purebpf.errors import KernelError

__all__ = [
    "attach_filter",
    "attach_reuseport",
    "detach_filter",
    "detach_reuseport",
]

_SO_DETACH_FILTER, _SO_ATTACH_BPF = 27, 50
_SO_ATTACH_REUSEPORT_EBPF, _SO_DETACH_REUSEPORT_BPF = 52, 68
"""include/uapi/asm-generic/socket.h: alpha, mips, parisc and sparc have other numbers."""


def attach_filter(fd: int, program_fd: int) -> None:
    """SO_ATTACH_BPF: the program sees the packets that the socket receives, and may cut them.

    Linux 3.19 (commit 89aa075832b0).
    """
    _set(fd, "SO_ATTACH_BPF", _SO_ATTACH_BPF, program_fd)


def detach_filter(fd: int) -> None:
    """SO_DETACH_FILTER: ENOENT, there is none."""
    _set(fd, "SO_DETACH_FILTER", _SO_DETACH_FILTER, 0)


def attach_reuseport(fd: int, program_fd: int) -> None:
    """SO_ATTACH_REUSEPORT_EBPF: the program chooses one of the sockets of a port.

    Linux 4.5 (commit 538950a1b752, "soreuseport: setsockopt SO_ATTACH_REUSEPORT_[CE]BPF").
    """
    _set(fd, "SO_ATTACH_REUSEPORT_EBPF", _SO_ATTACH_REUSEPORT_EBPF, program_fd)


def detach_reuseport(fd: int) -> None:
    """SO_DETACH_REUSEPORT_BPF (Linux 5.3): ENOENT, there is none."""
    _set(fd, "SO_DETACH_REUSEPORT_BPF", _SO_DETACH_REUSEPORT_BPF, 0)


def _set(fd: int, name: str, option: int, value: int) -> None:
    try:
        with _duplicate(fd) as sock:
            sock.setsockopt(socket.SOL_SOCKET, option, value)
    except OSError as error:
        raise KernelError(f"setsockopt({name})", error.errno or 0) from None


def _duplicate(fd: int) -> socket.socket:
    """The same socket under another number, which can be closed; OSError, it is none."""
    again = os.dup(fd)
    try:
        return socket.socket(fileno=again)
    except BaseException:
        os.close(again)
        raise
