"""The common parts of tcx and netkit: several programs on one side of an interface, in an order."""

from __future__ import annotations

import errno

from purebpf.errors import AttachError, KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.mprog import REPLACE, Order, explain_refusal
from purebpf.loader.attach._common.prog_attach import attach_plainly
from purebpf.loader.host.interfaces import Interface
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf
from purebpf.tuples import NamedTuple

__all__ = ["Hook", "create_link", "not_attached", "replacing"]


class Hook(NamedTuple):
    """One side of an interface; `member` of union bpf_attr has its order: `tcx` or `netkit`."""

    interface: Interface
    attach_type: int
    member: str


def create_link(program: Program, hook: Hook, link_order: Order, description: str) -> Link:
    """A bpf_link.

    Raises:
        KernelError: refused.
    """
    fields = {
        f"{hook.member}_relative_fd": link_order.relative_fd,
        f"{hook.member}_expected_revision": link_order.revision,
    }
    link = bpf.link_create(
        hook.attach_type,
        prog_fd=program.fileno(),
        target_ifindex=hook.interface.ifindex,
        flags=link_order.flags,
        **fields,
    )
    return Link(description, link=link)


def replacing(
    program: Program, old: Program, hook: Hook, link_order: Order, description: str
) -> Link:
    """An attachment without a bpf_link in the place of `old`, which has none either.

    Raises:
        TypeError: an order: it runs where `old` did.
        AttachError: ENOENT, `old` is not attached there, or has a bpf_link.
    """
    if link_order.asked:
        raise TypeError("replace= keeps the position: before= and after= cannot be set")
    try:
        return attach_plainly(
            program,
            hook.interface.ifindex,
            hook.attach_type,
            description,
            attach_flags=REPLACE,
            replace_bpf_fd=old.fileno(),
        )
    except KernelError as error:
        raise not_attached(error, description, link_order) from None


def not_attached(error: KernelError, description: str, link_order: Order) -> AttachError:
    """The error of an attachment to an interface, explained."""
    if error.errno in (errno.EPERM, errno.EBUSY):
        linked_already = {errno.EBUSY: "the program to replace has a bpf_link: update that link"}
        return attach_error(error, description, linked_already, "CAP_BPF", "CAP_NET_ADMIN")
    return explain_refusal(error, description, link_order)
