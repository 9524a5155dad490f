"""XDP, tc and routes over rtnetlink(7), where there are no bpf_links for them.

The only module that imports pyroute2, at the first call of a `Route`: the import takes 0.2 s. A
`Route` stays in the network namespace of the thread that made it.

Each question has a separate connection (2 ms). pyroute2 waits with an event loop, and a forked
child shares its epoll descriptor: closing the child's copy would leave the parent waiting for ever.

Every method raises `KernelError` with the errno of the kernel's answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.syscall import network_namespace
from purebpf.tuples import NamedTuple

__all__ = ["EGRESS", "INGRESS", "Route", "TcFilter", "Tunnel"]

INGRESS, EGRESS = 0xFFFF_FFF2, 0xFFFF_FFF3
"""The two sides of a clsact qdisc: TC_H_CLSACT with TC_H_MIN_INGRESS or _EGRESS."""


class TcFilter(NamedTuple):
    """A tc filter: which side, and its place there."""

    side: int
    priority: int
    handle: int

    def fields(self) -> dict[str, int]:
        """Return the common fields of RTM_NEWTFILTER and RTM_DELTFILTER."""
        return {"parent": self.side, "prio": self.priority, "handle": self.handle}


class Tunnel(NamedTuple):
    """A route with packets for a program: its network, its interface, its gateway."""

    network: str
    ifindex: int
    gateway: str = ""

    def fields(self) -> dict[str, Any]:
        """Return the common fields of RTM_NEWROUTE and RTM_DELROUTE."""
        gateway = {"gateway": self.gateway} if self.gateway else {}
        return {"dst": self.network, "oif": self.ifindex, **gateway}


class Route(Closing):
    """rtnetlink of one network namespace, which it holds until `close()`."""

    def __init__(self) -> None:
        self._namespace = network_namespace.own()

    def set_xdp(self, ifindex: int, program_fd: int, flags: int, expected_fd: int = -1) -> None:
        """IFLA_XDP: set the program of an interface, or remove it (-1).

        With XDP_FLAGS_REPLACE, only if `expected_fd` is there now (Linux 5.7,
        commit 92234c8f15c8, "xdp: Support specifying expected existing program when attaching
        XDP").
        """
        attributes = [("IFLA_XDP_FD", program_fd), ("IFLA_XDP_FLAGS", flags)]
        if expected_fd >= 0:
            attributes.append(("IFLA_XDP_EXPECTED_FD", expected_fd))
        xdp = {"attrs": attributes}
        self._ask("RTM_SETLINK", lambda route: route.link("set", index=ifindex, xdp=xdp))

    def add_clsact(self, ifindex: int) -> None:
        """Make the clsact qdisc of an interface. EEXIST: it has one, or an ingress qdisc."""
        self._ask("RTM_NEWQDISC", lambda route: route.tc("add", kind="clsact", index=ifindex))

    def delete_clsact(self, ifindex: int) -> None:
        """Remove the clsact qdisc of an interface, with every filter. EINVAL or ENOENT: none."""
        self._ask("RTM_DELQDISC", lambda route: route.tc("del", kind="clsact", index=ifindex))

    def add_filter(self, ifindex: int, place: TcFilter, program_fd: int, name: str) -> None:
        """Make a direct-action BPF filter for all protocols. EEXIST: another filter has its
        place.
        """
        program = {"fd": program_fd, "name": name, "direct_action": True}
        fields = {"kind": "bpf", "index": ifindex, **place.fields(), **program}
        self._ask("RTM_NEWTFILTER", lambda route: route.tc("add-filter", **fields))

    def delete_filter(self, ifindex: int, place: TcFilter) -> None:
        """Remove a filter that `add_filter` made. ENOENT or EINVAL: it is gone."""
        fields = {"kind": "bpf", "index": ifindex, **place.fields()}
        self._ask("RTM_DELTFILTER", lambda route: route.tc("del-filter", **fields))

    def add_tunnel(self, tunnel: Tunnel, side: str, program_fd: int, name: str) -> None:
        """Make a route with a program for its packets: "in", "out" or "xmit".

        Linux 4.10 (commit 3a0af8fd61f9). Or "seg6local", for packets with a segment routing header
        (Linux 4.18, commit 004d4b274e2a).
        """
        program = {"fd": program_fd, "name": name}
        encapsulation: dict[str, Any] = {"type": "bpf", side: program}
        if side == "seg6local":
            encapsulation = {"type": side, "action": "End.BPF", "bpf": program}
        fields = {"encap": encapsulation, **tunnel.fields()}
        self._ask("RTM_NEWROUTE", lambda route: route.route("add", **fields))

    def delete_tunnel(self, tunnel: Tunnel) -> None:
        """Remove a route that `add_tunnel` made. ESRCH: it is gone."""
        self._ask("RTM_DELROUTE", lambda route: route.route("del", **tunnel.fields()))

    def filters(self, ifindex: int, side: int) -> list[TcFilter]:
        """The filters on one side, of every kind."""
        answers = self._ask(
            "RTM_GETTFILTER", lambda route: list(route.get_filters(index=ifindex, parent=side))
        )
        # A priority that holds filters is listed itself, too, with handle 0.
        return [TcFilter(side, answer["info"] >> 16, answer["handle"]) for answer in answers]

    def close(self) -> None:
        """Let go of the namespace; again is harmless."""
        self._namespace.close()

    def _ask(self, request: str, question: Callable[[Any], Any]) -> Any:
        """Put a question to the kernel, in a separate thread when this one runs an event loop."""
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._answer(request, question)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._answer, request, question).result()

    def _answer(self, request: str, question: Callable[[Any], Any]) -> Any:
        """The kernel's answer, over a connection for it alone; an error as ours."""
        from pyroute2 import IPRoute
        from pyroute2.netlink.exceptions import NetlinkError

        with network_namespace.inside(self._namespace.fileno()), IPRoute() as route:
            try:
                return question(route)
            except NetlinkError as error:
                raise KernelError(f"rtnetlink({request})", error.code) from None
