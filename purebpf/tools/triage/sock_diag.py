"""The kernel's list of sockets: sock_diag(7), in our network namespace."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

__all__ = ["attributes", "dump"]

_SOCK_DIAG, _BY_FAMILY = 4, 20
_DUMP = 0x301
"""NLM_F_REQUEST | NLM_F_DUMP."""
_HEADER = struct.Struct("<IHHII")
_ATTRIBUTE = struct.Struct("<HH")
_DONE, _ERROR = 3, 2
_ROOM = 1 << 17
_TIMEOUT_S = 0.5


def dump(request: bytes) -> Iterator[bytes]:
    """Yield the messages that answer a request, without their headers.

    Raises:
        OSError: the kernel does not answer.
    """
    header = _HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 1, 0)
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG
    ) as sock:
        sock.settimeout(_TIMEOUT_S)
        sock.send(header + request)
        while True:
            data = sock.recv(_ROOM)
            at = 0
            while at + _HEADER.size <= len(data):
                size, kind, *_ = _HEADER.unpack_from(data, at)
                if kind in (_DONE, _ERROR) or size < _HEADER.size:
                    return
                yield data[at + _HEADER.size : at + size]
                at += _aligned(size)


def attributes(message: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield the attributes of a message from an offset on: the kind and the value."""
    while at + _ATTRIBUTE.size <= len(message):
        size, kind = _ATTRIBUTE.unpack_from(message, at)
        if size < _ATTRIBUTE.size:
            return
        yield kind, message[at + _ATTRIBUTE.size : at + size]
        at += _aligned(size)


def _aligned(size: int) -> int:
    return (size + 3) & ~3
