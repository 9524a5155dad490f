"""A network of a test's own: a namespace with a loopback, and pairs of interfaces in it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import errno_name

__all__ = ["namespace", "pair", "raised"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNET = 0x40000000
_SIOCSIFFLAGS, _UP = 0x8914, 1


def _check(result: int, call: str) -> None:
    assert result == 0, f"{call} says {errno_name(ctypes.get_errno())}"


@contextmanager
def namespace() -> Iterator[None]:
    """This thread is alone in a network namespace whose loopback is up."""
    outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _check(_LIBC.unshare(_NEWNET), "unshare(CLONE_NEWNET)")
        try:
            raised("lo")
            yield
        finally:
            _check(_LIBC.setns(outside, _NEWNET), "setns")
    finally:
        os.close(outside)


def raised(interface: str) -> None:
    """Set an interface up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH22x", interface.encode(), _UP)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, request)


@contextmanager
def pair(one: str, other: str, kind: str = "veth") -> Iterator[None]:
    """Two interfaces that are each other's other end, up; they go with the namespace, or here."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        route.link("add", ifname=one, kind=kind, peer=other)
        raised(one)
        raised(other)
        try:
            yield
        finally:
            for index in route.link_lookup(ifname=one):
                route.link("del", index=index)
