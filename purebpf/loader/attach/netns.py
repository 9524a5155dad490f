"""Attach to a network namespace: `sk_lookup` (Linux 5.9) and `flow_dissector` (5.8).

By a bpf_link: commit e9ddbb7707ff, and commit 7f045a49fee0.
"""

from __future__ import annotations

import errno

from purebpf.abi.bpf import bpf_attach_type, bpf_prog_type
from purebpf.errors import KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.places import OUR_NAMESPACE, Namespace, open_namespace
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf

__all__ = ["attach"]


_ATTACH_TYPES: dict[int, int] = {
    bpf_prog_type.BPF_PROG_TYPE_SK_LOOKUP: bpf_attach_type.BPF_SK_LOOKUP,
    bpf_prog_type.BPF_PROG_TYPE_FLOW_DISSECTOR: bpf_attach_type.BPF_FLOW_DISSECTOR,
}
_WHY = {
    errno.EEXIST: "the initial network namespace has a flow dissector, which applies to all "
    "others; or it cannot have one while another namespace has one",
    errno.EINVAL: (
        "the target is not a network namespace, or this kernel does not support such links "
        "(Linux 5.8, 5.9)"
    ),
    errno.E2BIG: "it already has the kernel's maximum of programs: one flow dissector, 64 others",
}


def attach(program: Program, target: Namespace = None) -> Link:
    """Run `program` in the network namespace `target`.

    Args:
        program: an `sk_lookup` program, which finds the socket for a packet, or a
            `flow_dissector`, of which a namespace has one.
        target: the namespace, as a path or an object with `fileno()`; by default, this thread's.

    Raises:
        TypeError: a target that is not a file.
        ValueError: the program is closed.
        KernelError: ENOENT, there is no such file.
        AttachError: E2BIG or EEXIST, there is a flow dissector; EINVAL, the file is not a network
            namespace; EPERM, no CAP_NET_ADMIN.
    """
    attach_type = _ATTACH_TYPES[program.type]
    namespace_path = OUR_NAMESPACE if target is None else target
    description = f"program {program.name!r} on network namespace {namespace_path}"
    with open_namespace(target) as namespace:
        try:
            link = bpf.link_create(
                attach_type, prog_fd=program.fileno(), target_fd=namespace.fileno()
            )
        except KernelError as error:
            raise attach_error(error, description, _WHY, "CAP_NET_ADMIN") from None
    return Link(description, link=link)
