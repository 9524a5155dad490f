"""The other ends of unix sockets."""

from __future__ import annotations

import socket
import struct

from purebpf.tools.triage.sock_diag import attributes, dump

__all__ = ["unix_peers"]

_REQUEST = struct.Struct("<BxxxIIIQ")
"""struct unix_diag_req of linux/unix_diag.h: family, states, inode, show, cookie."""
_MESSAGE = struct.Struct("<4xI8x")
"""struct unix_diag_msg, of which the inode is read."""
_ALL_STATES, _SHOW_PEER, _PEER = 0xFFFFFFFF, 4, 2
_INODE = struct.Struct("<I")


def unix_peers() -> dict[int, int]:
    """The inode of the peer by the inode of a connected unix socket; {} if the kernel is silent."""
    request = _REQUEST.pack(socket.AF_UNIX, _ALL_STATES, 0, _SHOW_PEER, 0)
    peers: dict[int, int] = {}
    try:
        for message in dump(request):
            if len(message) < _MESSAGE.size:
                continue
            (inode,) = _MESSAGE.unpack_from(message)
            for kind, value in attributes(message, _MESSAGE.size):
                if kind == _PEER and len(value) >= _INODE.size:
                    (peers[inode],) = _INODE.unpack_from(value)
    except OSError:
        pass  # what came until then is right
    return peers
