"""Network interfaces of this network namespace: names and indexes (if_nametoindex(3))."""

from __future__ import annotations

import socket

__all__ = ["index_of", "name_of", "names"]


def index_of(name: str) -> int:
    """The index of an interface, or 0."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


def name_of(index: int) -> str:
    """The name of an interface, or ""."""
    try:
        return socket.if_indextoname(index)
    except (OSError, OverflowError):
        return ""


def names() -> list[str]:
    """Every interface, in the order of the indexes."""
    return [name for _, name in sorted(socket.if_nameindex())]
