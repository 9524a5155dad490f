"""The other ends of unix sockets, and their addresses."""

from __future__ import annotations

import os
import socket
import struct
import time

from purebpf.tools.triage.sock_diag import attributes, dump

__all__ = ["UnixWatch", "unix_sockets"]

_REQUEST = struct.Struct("<BxxxIIIQ")
"""struct unix_diag_req of linux/unix_diag.h: family, states, inode, show, cookie."""
_MESSAGE = struct.Struct("<4xI8x")
"""struct unix_diag_msg, of which the inode is read."""
_ALL_STATES, _SHOW_NAME, _SHOW_PEER = 0xFFFFFFFF, 1, 4
_NAME, _PEER = 0, 2
_INODE = struct.Struct("<I")
_REST = 50
"""Time between two looks, by the time that one takes: at most 2 % of a CPU."""


class UnixWatch:
    """Both ends of unix sockets at each `tick`: most connections are closed before the end.

    Attributes:
        peers, names: as of `unix_sockets`, of all looks.
    """

    def __init__(self) -> None:
        self.peers: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self._due_s = 0.0

    def tick(self) -> None:
        """Look again, unless that would take too much time."""
        began_s = time.monotonic()
        if began_s < self._due_s:
            return
        peers, names = unix_sockets()
        self.peers |= peers
        self.names |= names
        now_s = time.monotonic()
        self._due_s = now_s + _REST * (now_s - began_s)


def unix_sockets() -> tuple[dict[int, int], dict[int, str]]:
    """The peer and the address by the inode of a unix socket, as far as they have one.

    A connection of a server has its server's address; both are {} if the kernel is silent.
    """
    show = _SHOW_NAME | _SHOW_PEER
    request = _REQUEST.pack(socket.AF_UNIX, _ALL_STATES, 0, show, 0)
    peers: dict[int, int] = {}
    names: dict[int, str] = {}
    try:
        for message in dump(request):
            if len(message) < _MESSAGE.size:
                continue
            (inode,) = _MESSAGE.unpack_from(message)
            for kind, value in attributes(message, _MESSAGE.size):
                if kind == _PEER and len(value) >= _INODE.size:
                    (peer,) = _INODE.unpack_from(value)
                    if peer:  # 0: its server has not accepted it
                        peers[inode] = peer
                elif kind == _NAME and value:
                    names[inode] = _spell(value)
    except OSError:
        pass  # what came until then is right
    return peers, names


def _spell(name: bytes) -> str:
    """A path, or "@NAME" for an abstract address: see unix(7)."""
    text = os.fsdecode(name[1:] if name[:1] == b"\0" else name.partition(b"\0")[0])
    return f"@{text}" if name[:1] == b"\0" else text
