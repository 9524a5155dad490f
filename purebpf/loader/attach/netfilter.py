"""Attach to a netfilter hook: packets on their way through the IP stack.

Linux 6.4 (commit 84601d6ee68a, "bpf: add bpf_link support for BPF_NETFILTER programs").
"""

from __future__ import annotations

import errno

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf

__all__ = ["attach"]

_FAMILIES = {"ipv4": 2, "ipv6": 10}
_HOOKS = ("prerouting", "input", "forward", "output", "postrouting")
_DEFRAGMENT = 1  # BPF_F_NETFILTER_IP_DEFRAG
_WHY = {
    errno.EAFNOSUPPORT: "this kernel does not filter this family (CONFIG_NETFILTER)",
    errno.EBUSY: "the hook already has a BPF program of this priority: choose another",
    errno.ERANGE: "the kernel reserves the lowest and the highest priority",
    errno.EINVAL: "this kernel does not support netfilter links (Linux 6.4, "
    "CONFIG_NETFILTER_BPF_LINK)",
    errno.EOPNOTSUPP: "this kernel cannot defragment packets here (CONFIG_NF_DEFRAG_IPV4, _IPV6)",
}


def attach(
    program: Program,
    target: str | None = None,
    *,
    hook: str = "",
    priority: int = 0,
    defragment: bool = False,
) -> Link:
    """Run `program` for the packets that pass a hook of this network namespace.

    Args:
        program: a `netfilter` program: it returns 1 to accept a packet, 0 to drop it.
        target: "ipv4" or "ipv6".
        hook: "prerouting", "input", "forward", "output" or "postrouting".
        priority: programs and tables of lower numbers see the packet first.
        defragment: whole packets only; needs a priority above -400 (Linux 6.6,
            commit 91721c2d02d3).

    Raises:
        TypeError: no family, or no hook.
        ValueError: an unknown family or hook; the program is closed.
        AttachError: EBUSY, the priority is in use; EPERM, no CAP_NET_ADMIN; EINVAL, no such links.
    """
    if not target or not hook:
        raise TypeError(f'program {program.name!r}: family and hook required: "ipv4", hook="input"')
    if target not in _FAMILIES:
        raise ValueError(f"unknown family {target!r}; known: {', '.join(_FAMILIES)}")
    if hook not in _HOOKS:
        raise ValueError(f"unknown hook {hook!r}; known: {', '.join(_HOOKS)}")
    description = f"program {program.name!r} on {target} {hook}, priority {priority}"
    try:
        link = bpf.link_create(
            bpf_attach_type.BPF_NETFILTER,
            prog_fd=program.fileno(),
            netfilter_pf=_FAMILIES[target],
            netfilter_hooknum=_HOOKS.index(hook),
            netfilter_priority=priority,
            netfilter_flags=_DEFRAGMENT if defragment else 0,
        )
    except KernelError as error:
        raise attach_error(error, description, _WHY, "CAP_NET_ADMIN") from None
    return Link(description, link=link)
