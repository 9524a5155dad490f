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

__all__ = ["make", "namespace", "netkit_pair", "pair", "raised", "set_mtu"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNET = 0x40000000
_SIOCSIFFLAGS, _SIOCSIFMTU, _UP = 0x8914, 0x8922, 1


def _check(result: int, call: str) -> None:
    assert result == 0, f"{call} says {errno_name(ctypes.get_errno())}"


@contextmanager
def namespace() -> Iterator[None]:
    """This thread is alone in a network namespace with its loopback up."""
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
    _ioctl(_SIOCSIFFLAGS, struct.pack("16sH22x", interface.encode(), _UP))


def set_mtu(interface: str, mtu: int) -> None:
    """Set the length of its longest packets."""
    _ioctl(_SIOCSIFMTU, struct.pack("16si20x", interface.encode(), mtu))


def _ioctl(request: int, argument: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, request, argument)


def make(kind: str) -> None:
    """An interface of a kind, which lives as long as the namespace.

    Raises:
        NetlinkError: this kernel has no such kind.
    """
    from pyroute2 import IPRoute

    with IPRoute() as route:
        route.link("add", ifname=f"a{kind}", kind=kind)


@contextmanager
def pair(one: str, other: str) -> Iterator[None]:
    """Two veth interfaces, each the other's other end, that are up."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        route.link("add", ifname=one, kind="veth", peer=other)
        raised(one)
        raised(other)
        try:
            yield
        finally:
            for index in route.link_lookup(ifname=one):
                route.link("del", index=index)


@contextmanager
def netkit_pair() -> Iterator[tuple[str, str]]:
    """A primary netkit device and its peer, which the kernel names, both up."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        before = set(socket.if_nameindex())
        route.link("add", ifname="primary", kind="netkit")
        (peer,) = {name for _, name in set(socket.if_nameindex()) - before} - {"primary"}
        raised("primary")
        raised(peer)
        try:
            yield "primary", peer
        finally:
            for index in route.link_lookup(ifname="primary"):
                route.link("del", index=index)
