"""Attach to a socket: a filter of received packets, or the choice among sockets of one port.

There is no bpf_link for these: the socket holds the program, until the link is closed or the
socket is.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from purebpf.abi.bpf import bpf_prog_type
from purebpf.errors import KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.programs.link import Link, Usable
from purebpf.loader.programs.program import Program
from purebpf.syscall import sockets

__all__ = ["attach"]

_WHY = {
    errno.EPERM: "the socket's filter is locked (SO_LOCK_FILTER)",
    errno.EBUSY: "the socket option memory is used up (net.core.optmem_max)",
    errno.ENOMEM: "the socket option memory is used up (net.core.optmem_max)",
    errno.ENOTSOCK: "the target is not a socket",
    errno.EINVAL: "the program has another type, or the socket does not share its port: set "
    "SO_REUSEPORT before binding it",
    errno.EADDRINUSE: "the socket does not share its port",
}


def attach(program: Program, target: Usable | None, *, reuseport: bool | None = None) -> Link:
    """Run `program` for the packets that the socket `target` receives.

    Args:
        program: a `socket` program, which returns how many bytes of a packet the socket gets; or
            an `sk_reuseport` program, which says which of the sockets of a port gets it.
        target: the socket, an object with `fileno()`; it is the caller's, and its program ends
            with it. Of sockets that share a port, any one represents all.
        reuseport: a `socket` program returns the number of the socket of the port (Linux 4.5).

    Raises:
        TypeError: no socket.
        ValueError: the program or the socket is closed.
        AttachError: EINVAL, the socket does not share its port; ENOTSOCK; EPERM.
    """
    if target is None or not hasattr(target, "fileno"):
        raise TypeError(f"program {program.name!r}: expected a socket, got {target!r}")
    if (number := target.fileno()) < 0:
        raise ValueError(f"program {program.name!r}: the socket is closed")
    if reuseport is None:
        reuseport = program.type == bpf_prog_type.BPF_PROG_TYPE_SK_REUSEPORT
    description = f"program {program.name!r} on {'the port of ' * reuseport}socket {number}"
    try:
        if reuseport:
            sockets.attach_reuseport(number, program.fileno())
        else:
            sockets.attach_filter(number, program.fileno())
    except KernelError as error:
        raise attach_error(error, description, _WHY) from None
    detach = sockets.detach_reuseport if reuseport else sockets.detach_filter
    return Link(description, undo=lambda: _detach(target, detach))


def _detach(target: Usable, detach: Callable[[int], None]) -> None:
    """Take the program off, unless the socket is closed or has none."""
    try:
        number = target.fileno()
    except ValueError:
        return
    if number < 0:
        return
    try:
        detach(number)
    except KernelError as error:
        if error.errno != errno.ENOENT:
            raise
