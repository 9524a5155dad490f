"""XDP, tc and routes over rtnetlink(7), where there are no bpf_links for them.

The only module that imports pyroute2, and only when a `Route` is made: that takes 0.2 s. A `Route`
stays in the network namespace that its thread was in when it was made.

Every method raises `KernelError` with the errno of the kernel's answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from purebpf.closing import Closing
from purebpf.errors import KernelError

__all__ = ["EGRESS", "INGRESS", "Filter", "Route", "Tunnel"]

INGRESS, EGRESS = 0xFFFF_FFF2, 0xFFFF_FFF3
"""The two sides of a clsact qdisc: TC_H_CLSACT with TC_H_MIN_INGRESS or _EGRESS."""


class Filter(NamedTuple):
    """A tc filter: which side, and its place there."""

    side: int
    priority: int
    handle: int


class Tunnel(NamedTuple):
    """A route whose packets a program sees: where to, by which interface, over which gateway."""

    network: str
    ifindex: int
    gateway: str = ""

    def fields(self) -> dict[str, Any]:
        """What RTM_NEWROUTE and RTM_DELROUTE both want to know."""
        gateway = {"gateway": self.gateway} if self.gateway else {}
        return {"dst": self.network, "oif": self.ifindex, **gateway}


class Route(Closing):
    """A connection to rtnetlink; `close()` ends it."""

    def __init__(self) -> None:
        from pyroute2 import IPRoute

        self._route: Any = IPRoute()

    def set_xdp(self, ifindex: int, program_fd: int, flags: int, expected_fd: int = -1) -> None:
        """IFLA_XDP: set the program of an interface, or remove it (-1).

        With XDP_FLAGS_REPLACE, only if `expected_fd` is there now (Linux 5.7).
        """
        attributes = [("IFLA_XDP_FD", program_fd), ("IFLA_XDP_FLAGS", flags)]
        if expected_fd >= 0:
            attributes.append(("IFLA_XDP_EXPECTED_FD", expected_fd))
        with _answers("RTM_SETLINK"):
            self._route.link("set", index=ifindex, xdp={"attrs": attributes})

    def add_clsact(self, ifindex: int) -> None:
        """Make the clsact qdisc of an interface. EEXIST: it has one, or an ingress qdisc."""
        with _answers("RTM_NEWQDISC"):
            self._route.tc("add", kind="clsact", index=ifindex)

    def delete_clsact(self, ifindex: int) -> None:
        """Remove the clsact qdisc of an interface, with every filter. EINVAL or ENOENT: none."""
        with _answers("RTM_DELQDISC"):
            self._route.tc("del", kind="clsact", index=ifindex)

    def add_filter(self, ifindex: int, place: Filter, program_fd: int, name: str) -> None:
        """Make a direct-action BPF filter for all protocols. EEXIST: the place is taken."""
        with _answers("RTM_NEWTFILTER"):
            self._route.tc(
                "add-filter",
                kind="bpf",
                index=ifindex,
                parent=place.side,
                prio=place.priority,
                handle=place.handle,
                fd=program_fd,
                name=name,
                direct_action=True,
            )

    def delete_filter(self, ifindex: int, place: Filter) -> None:
        """Remove a filter that `add_filter` made. ENOENT or EINVAL: it is gone."""
        with _answers("RTM_DELTFILTER"):
            self._route.tc(
                "del-filter",
                kind="bpf",
                index=ifindex,
                parent=place.side,
                prio=place.priority,
                handle=place.handle,
            )

    def add_tunnel(self, tunnel: Tunnel, side: str, program_fd: int, name: str) -> None:
        """Make a route with a program for its packets: "in", "out" or "xmit" (Linux 4.10)."""
        encapsulation = {"type": "bpf", side: {"fd": program_fd, "name": name}}
        with _answers("RTM_NEWROUTE"):
            self._route.route("add", encap=encapsulation, **tunnel.fields())

    def delete_tunnel(self, tunnel: Tunnel) -> None:
        """Remove a route that `add_tunnel` made. ESRCH: it is gone."""
        with _answers("RTM_DELROUTE"):
            self._route.route("del", **tunnel.fields())

    def filters(self, ifindex: int, side: int) -> list[Filter]:
        """The filters on one side, whatever their kind."""
        with _answers("RTM_GETTFILTER"):
            found = list(self._route.get_filters(index=ifindex, parent=side))
        # A priority that holds filters is listed itself, too, with handle 0.
        return [Filter(side, each["info"] >> 16, each["handle"]) for each in found]

    def close(self) -> None:
        """Close the connection; again is harmless."""
        route, self._route = self._route, None
        if route is not None:
            route.close()


@contextmanager
def _answers(request: str) -> Iterator[None]:
    """What pyroute2 raises for the kernel's answer, as ours."""
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        yield
    except NetlinkError as error:
        raise KernelError(f"rtnetlink({request})", error.code) from None
