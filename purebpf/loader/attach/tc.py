"""Attach to the packets that enter or leave an interface: tcx (Linux 6.6), else a clsact filter.

Commit e420bed02507 (tcx); commit 1f211a1b929c, "net, sched: add clsact qdisc".

A tcx program is a bpf_link: it ends with its process. A filter outlives the process that dies
without removing it. Closing removes only this process's parts of clsact: the filter, and the qdisc
if this process created it and it holds no other filter.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

from purebpf.abi.bpf import bpf_attach_type, bpf_prog_type
from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.mprog import Neighbour, order
from purebpf.loader.attach._common.tcx_netkit import Hook, create_link, not_attached, replacing
from purebpf.loader.host.interfaces import Interface, find_interface
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import netlink

__all__ = ["attach"]

_INGRESS, _EGRESS = bpf_attach_type.BPF_TCX_INGRESS, bpf_attach_type.BPF_TCX_EGRESS
_SIDES = {"ingress": _INGRESS, "egress": _EGRESS}
_PARENTS = {_INGRESS: netlink.INGRESS, _EGRESS: netlink.EGRESS}

_PRIORITY = 0xC000
"""The priority of filters without one: behind those of low numbers, as tc(8) chooses, too."""

_LAST_PRIORITY = 0xFFFF
_HANDLES = 1 << 10
"""Filters of one priority to look for a free place among."""

_NO_FILTERS = (
    "this kernel does not have a clsact qdisc or BPF filters (modules sch_ingress, cls_bpf)"
)
_REFUSED = {
    errno.EEXIST: "the priority has no free handle",
    errno.EINVAL: "the priority has filters of another kind or protocol, or the interface has an "
    "ingress qdisc instead of clsact",
    errno.ENOENT: _NO_FILTERS,
    errno.EOPNOTSUPP: _NO_FILTERS,
}
_GONE = (errno.ENOENT, errno.EINVAL, errno.ENODEV)
_made: set[tuple[int, int]] = set()
"""The clsact qdiscs that this process made: network namespace (inode) and interface."""


def attach(
    program: Program,
    target: str | int | None = None,
    *,
    direction: str = "",
    before: Neighbour = None,
    after: Neighbour = None,
    revision: int = 0,
    replace: Program | None = None,
    clsact: bool = False,
    priority: int = 0,
) -> Link:
    """Run `program` for the packets that enter or leave the interface `target`.

    Args:
        program: a `tc`, `tcx` or `classifier` program.
        target: the interface, by name or index.
        direction: "ingress" or "egress"; by default as the section says: `SEC("tc/ingress")`.
        before: run it before this program or link, or before `"all"`.
        after: likewise. Without either, it runs last.
        revision: only if the hook is at this revision (`Program.query`).
        replace: a tcx program that was attached without a bpf_link, to take its place.
        clsact: a filter, though the kernel has tcx.
        priority: of a filter: lower numbers run first. A kernel without tcx (before 6.6) gets a
            filter, and `Link.what` says so.

    Raises:
        TypeError: no interface; no direction; a priority, and tcx, which has an order instead.
        ValueError: no such interface, lists similar ones; a priority above 65535; the program is
            closed.
        AttachError: EPERM, no CAP_NET_ADMIN; ENOENT, ESTALE, of the order.
        NotSupportedError: an order, and a kernel without tcx.
    """
    if program.type != bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS:
        raise NotSupportedError(
            f"program {program.name!r}", "tc runs actions from a filter; purebpf attaches filters"
        )
    if not 0 <= priority <= _LAST_PRIORITY:
        raise ValueError(f"a filter's priority must be 1 to {_LAST_PRIORITY}, not {priority}")
    interface = find_interface(target)
    attach_type = _attach_type(program, direction)
    side = "ingress" if attach_type == _INGRESS else "egress"
    description = f"program {program.name!r} on {side} of {interface}"
    hook = Hook(interface, attach_type, "tcx")
    place = order(before, after, revision)
    if clsact:
        if place.asked or replace is not None:
            raise TypeError("clsact filters take priority=, not before= or after=")
        return _filter(program, interface, attach_type, priority, f"{description} (clsact filter)")
    if replace is not None:
        return replacing(program, replace, hook, place, description)
    try:
        link = create_link(program, hook, place, description)
    except KernelError as error:
        if error.errno not in (errno.EINVAL, errno.E2BIG) or _has_tcx(interface, attach_type):
            raise not_attached(error, description, place) from None
        if place.asked:
            raise NotSupportedError(
                f"an order for {description}", f"this kernel does not support tcx: {error}"
            ) from None
        instead = f"{description} (clsact filter, as this kernel does not support tcx)"
        return _filter(program, interface, attach_type, priority, instead)
    if priority:
        link.close()
        raise TypeError("tcx does not have priorities: use before= and after=, or clsact=True")
    return link


def _attach_type(program: Program, direction: str) -> bpf_attach_type:
    if direction:
        if direction not in _SIDES:
            raise ValueError(f'direction must be "ingress" or "egress", not {direction!r}')
        return _SIDES[direction]
    definition = program.definition
    if definition is not None and definition.attach_type in _PARENTS:
        return bpf_attach_type(definition.attach_type)
    raise TypeError(f'program {program.name!r}: direction required: "ingress" or "egress"')


def _has_tcx(interface: Interface, attach_type: int) -> bool:
    from purebpf.loader.attach.query import query

    try:
        query(interface.ifindex, attach_type)
    except (KernelError, NotSupportedError):
        return False
    return True


def _filter(
    program: Program,
    interface: Interface,
    attach_type: bpf_attach_type,
    priority: int,
    description: str,
) -> Link:
    namespace = os.stat("/proc/thread-self/ns/net").st_ino
    qdisc = (namespace, interface.ifindex)
    side = _PARENTS[attach_type]
    with ExitStack() as held, ExitStack() as undo:
        route = held.enter_context(netlink.Route())
        try:
            if _qdisc_was_missing(route, interface):
                _made.add(qdisc)
            undo.callback(_remove_qdisc, route, qdisc)
            place = _add_filter(route, interface, side, priority or _PRIORITY, program)
        except KernelError as error:
            raise _explain(error, description) from None
        undo.callback(_remove_filter, route, interface, place)
        return Link(description, undo=undo.pop_all().close, held=held.pop_all())


def _qdisc_was_missing(route: netlink.Route, interface: Interface) -> bool:
    try:
        route.add_clsact(interface.ifindex)
    except KernelError as error:
        if error.errno != errno.EEXIST:
            raise
        return False
    return True


def _add_filter(
    route: netlink.Route, interface: Interface, side: int, priority: int, program: Program
) -> netlink.TcFilter:
    """Return the place of the filter: the first free handle of its priority."""
    for handle in range(1, _HANDLES):
        place = netlink.TcFilter(side, priority, handle)
        try:
            route.add_filter(interface.ifindex, place, program.fileno(), program.name)
        except KernelError as error:
            if error.errno != errno.EEXIST:
                raise
        else:
            return place
    raise KernelError("rtnetlink(RTM_NEWTFILTER)", errno.EEXIST)


def _remove_filter(route: netlink.Route, interface: Interface, place: netlink.TcFilter) -> None:
    try:
        route.delete_filter(interface.ifindex, place)
    except KernelError as error:
        if error.errno not in _GONE:
            raise


def _remove_qdisc(route: netlink.Route, qdisc: tuple[int, int]) -> None:
    """Remove a qdisc that purebpf made, once it has no filter."""
    ifindex = qdisc[1]
    if qdisc not in _made:
        return
    try:
        if any(route.filters(ifindex, side) for side in _PARENTS.values()):
            return
        route.delete_clsact(ifindex)
    except KernelError as error:
        if error.errno not in _GONE:
            raise
    _made.discard(qdisc)


def _explain(error: KernelError, description: str) -> AttachError:
    fix = "choose another priority=" if error.errno == errno.EINVAL else ""
    return attach_error(error, description, _REFUSED, "CAP_NET_ADMIN", fix=fix)
