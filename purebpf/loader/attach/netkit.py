"""Attach to a netkit device: programs see the packets of its two ends before they leave.

Linux 6.7 (commit 35dfaad7188c).
"""

from __future__ import annotations

import errno

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.mprog import Neighbour, order
from purebpf.loader.attach._common.tcx_netkit import Hook, create_link, not_attached, replacing
from purebpf.loader.host.interfaces import find_interface
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program

__all__ = ["attach"]

_ENDS = {
    "primary": bpf_attach_type.BPF_NETKIT_PRIMARY,
    "peer": bpf_attach_type.BPF_NETKIT_PEER,
}


def attach(
    program: Program,
    target: str | int | None = None,
    *,
    end: str = "",
    before: Neighbour = None,
    after: Neighbour = None,
    revision: int = 0,
    replace: Program | None = None,
) -> Link:
    """Run `program` for the packets that one end of a netkit pair sends.

    Args:
        program: a `netkit/primary` or `netkit/peer` program, or any `tc` program.
        target: the primary device, by name or index, also for programs of its peer.
        end: "primary" or "peer"; by default as the section says.
        before: run it before this program or link, or before `"all"`.
        after: likewise. Without either, it runs last.
        revision: only if the hook is at this revision (`Program.query`).
        replace: a program that was attached without a bpf_link, to take its place.

    Raises:
        TypeError: no interface; no end.
        ValueError: no such interface, lists similar ones; the program is closed.
        AttachError: EINVAL, ENXIO: it is not a netkit device, or no primary one; EPERM; errors of
            the order.
    """
    interface = find_interface(target)
    attach_type = _attach_type(program, end)
    hook = Hook(interface, attach_type, "netkit")
    link_order = order(before, after, revision)
    sender = "primary" if attach_type == _ENDS["primary"] else "peer"
    description = f"program {program.name!r} on {sender} of {interface}"
    if replace is not None:
        return replacing(program, replace, hook, link_order, description)
    try:
        return create_link(program, hook, link_order, description)
    except KernelError as error:
        number = error.errno or 0
        if number in (errno.ENXIO, errno.EACCES) or (
            number == errno.EINVAL and not link_order.asked
        ):
            why = (
                f"{interface} is not a primary netkit device, or this kernel does not support "
                "netkit (Linux 6.7)"
            )
            raise attach_error(error, description, {number: why}) from None
        raise not_attached(error, description, link_order) from None


def _attach_type(program: Program, end: str) -> bpf_attach_type:
    if end:
        if end not in _ENDS:
            raise ValueError(f'end must be "primary" or "peer", not {end!r}')
        return _ENDS[end]
    definition = program.definition
    if definition is not None and definition.attach_type in _ENDS.values():
        return bpf_attach_type(definition.attach_type)
    raise TypeError(f'program {program.name!r}: end required: "primary" or "peer"')
