"""Attach to a route: `lwt_in`, `lwt_out`, `lwt_xmit` (Linux 4.10), `lwt_seg6local` (4.18).

Commit 3a0af8fd61f9; for seg6local commit 004d4b274e2a.

A lightweight tunnel is a route that runs a program for its packets: packets that come to this
machine over it, packets that a socket sends, packets about to leave by its interface, or packets
that come with a segment routing header (SRv6) and that next segment. There is no bpf_link for
it: purebpf adds the route over netlink, through pyroute2, and removes it with the link.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from purebpf.abi.bpf import bpf_prog_type
from purebpf.errors import KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.host.interfaces import find_interface
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall.descriptor import Descriptor

__all__ = ["attach"]

_SIDES = {
    bpf_prog_type.BPF_PROG_TYPE_LWT_IN: "in",
    bpf_prog_type.BPF_PROG_TYPE_LWT_OUT: "out",
    bpf_prog_type.BPF_PROG_TYPE_LWT_XMIT: "xmit",
    bpf_prog_type.BPF_PROG_TYPE_LWT_SEG6LOCAL: "seg6local",
}
_WHY = {
    errno.EEXIST: "the network already has a route",
    errno.ENETUNREACH: "the gateway is unreachable from the interface",
    errno.EHOSTUNREACH: "the gateway is unreachable from the interface",
    errno.ENETDOWN: "the interface is down",
    errno.EOPNOTSUPP: "this kernel was built without CONFIG_LWTUNNEL_BPF, or CONFIG_IPV6_SEG6_BPF",
}


def attach(
    program: Program,
    target: str | IPv4Network | IPv6Network | None,
    *,
    interface: str | int | None = None,
    gateway: str = "",
) -> Link:
    """Make a route to the network `target`, and run `program` for its packets.

    Args:
        program: an `lwt_in`, `lwt_out`, `lwt_xmit` or `lwt_seg6local` program.
        target: the network, `"192.0.2.0/24"`; for `lwt_seg6local` one of IPv6.
        interface: the interface that the packets leave by, a name or an index.
        gateway: the next hop's address, if there is one.

    Raises:
        TypeError: no network, or no interface.
        ValueError: no network, a gateway that is not an address of its kind, an unknown interface,
            or the program is closed.
        AttachError: EEXIST, there is such a route; EOPNOTSUPP, a kernel without these; EPERM, no
            CAP_NET_ADMIN.
    """
    if target is None:
        raise TypeError(f"program {program.name!r}: target required: the network of the route")
    network = ip_network(target)
    side = _SIDES[bpf_prog_type(program.type)]
    if side == "seg6local" and network.version != 6:
        raise ValueError(f"program {program.name!r}: segment routing needs IPv6, not {network}")
    if gateway and ip_address(gateway).version != network.version:
        raise ValueError(f"program {program.name!r}: {gateway} is not a gateway to {network}")
    device = find_interface(interface)
    description = f"program {program.name!r} on the route to {network} by {device}"
    from purebpf.syscall.netlink import Route, Tunnel

    tunnel = Tunnel(str(network), device.ifindex, gateway)
    with ExitStack() as stack:
        route = stack.enter_context(Route())
        own = stack.enter_context(Descriptor(os.dup(program.fileno())))
        try:
            route.add_tunnel(tunnel, side, own.fileno(), program.name)
        except KernelError as error:
            raise attach_error(error, description, _WHY, "CAP_NET_ADMIN") from None

        def remove() -> None:
            try:
                route.delete_tunnel(tunnel)
            except KernelError as error:
                if error.errno not in (errno.ESRCH, errno.ENODEV):
                    raise

        return Link(description, undo=remove, held=stack.pop_all())
