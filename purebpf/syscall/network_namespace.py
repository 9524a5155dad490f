"""The network namespace of a thread: held by a descriptor, entered and left (setns(2))."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import KernelError
from purebpf.syscall.descriptor import Descriptor

__all__ = ["inside", "own"]

_NEWNET = 0x40000000  # CLONE_NEWNET
_OURS = "/proc/thread-self/ns/net"


def own() -> Descriptor:
    """The namespace that this thread is in.

    Raises:
        OSError: EMFILE, ENFILE, or no /proc.
    """
    return Descriptor(os.open(_OURS, os.O_RDONLY | os.O_CLOEXEC))


@contextmanager
def inside(namespace_fd: int) -> Iterator[None]:
    """This thread is in that namespace until the `with` block ends; in its own, nothing happens.

    Raises:
        KernelError: EPERM, no CAP_SYS_ADMIN to go to another one.
    """
    if os.path.samestat(os.stat(_OURS), os.fstat(namespace_fd)):
        yield
        return
    with own() as outside:
        _enter(namespace_fd)
        try:
            yield
        finally:
            _enter(outside.fileno())


def _enter(namespace_fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace_fd, _NEWNET):
        raise KernelError("setns(CLONE_NEWNET)", ctypes.get_errno())
