"""Attach to an interface's packets before the kernel looks at them: XDP (link: Linux 5.9).

A bpf_link (commit aa8d3a716b59) ends with its process. Over netlink, for kernels without such
links and for replacing a program that was attached that way, the program outlives a process that
dies.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import AttachError, KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.host.interfaces import Interface, find_interface
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

__all__ = ["attach"]

_UPDATE_IF_NOEXIST, _GENERIC, _NATIVE, _OFFLOAD, _REPLACE = 1, 2, 4, 8, 16
_MODES = {"": 0, "generic": _GENERIC, "native": _NATIVE, "offload": _OFFLOAD}
"""XDP_FLAGS_* of include/uapi/linux/if_link.h."""

_GONE = (errno.EEXIST, errno.ENOENT, errno.ENODEV, errno.EINVAL)
_REFUSED = {
    errno.EOPNOTSUPP: "the interface's driver does not support XDP in this mode",
    errno.ERANGE: "frames of the interface's MTU do not fit in one buffer of its driver: attach "
    'with mode="generic" (slower), load the program as SEC("xdp.frags"), or lower the MTU',
    errno.EEXIST: "the interface runs a program in another mode, or not the one to replace",
    errno.EINVAL: "the driver refuses the program or the interface's settings (MTU, queues), or "
    "the program is for a devmap or cpumap (SEC xdp/devmap, xdp/cpumap), or bound to another "
    "interface",
}


def attach(
    program: Program,
    target: str | int | None = None,
    *,
    mode: str = "",
    replace: Program | None = None,
    netlink: bool = False,
) -> Link:
    """Run `program` for every packet that the interface `target` receives.

    Args:
        program: an `xdp` or `xdp.frags` program.
        target: the interface, by name or index.
        mode: "native" (in the driver), "generic" (on any interface, slower) or "offload" (on the
            card); by default native where the driver can, else generic.
        replace: a program that was attached over netlink, to take its place; the new one is, too.
            A `Link` is updated instead.
        netlink: attach over netlink, though the kernel has links.

    Raises:
        TypeError: no interface.
        ValueError: no such interface, lists similar ones; an unknown mode; the program is closed.
        AttachError: EBUSY, the interface has a program; EOPNOTSUPP, its driver has no XDP;
            ERANGE, EINVAL, its settings do not allow it; EPERM, no CAP_NET_ADMIN.
    """
    interface = find_interface(target)
    if mode not in _MODES:
        mode_names = ", ".join(filter(None, _MODES))
        raise ValueError(f"unknown XDP mode {mode!r}; known: {mode_names}")
    flags = _MODES[mode]
    description = f"program {program.name!r} on {f'{mode} XDP' if mode else 'XDP'} of {interface}"
    if netlink or replace is not None:
        return _over_netlink(program, interface, flags, replace, f"{description} (over netlink)")
    try:
        return Link(
            description,
            link=bpf.link_create(
                bpf_attach_type.BPF_XDP,
                prog_fd=program.fileno(),
                target_ifindex=interface.ifindex,
                flags=flags,
            ),
        )
    except KernelError as error:
        if error.errno != errno.EINVAL or program.attach_type not in (0, bpf_attach_type.BPF_XDP):
            raise _explain(error, interface, description) from None
    # Before Linux 5.9 there was no such link; if that was not the reason, this fails as well.
    instead = f"{description} (over netlink, as this kernel does not support XDP links)"
    return _over_netlink(program, interface, flags, None, instead)


def _over_netlink(
    program: Program, interface: Interface, flags: int, old: Program | None, description: str
) -> Link:
    from purebpf.syscall.netlink import Route

    with ExitStack() as stack:
        route = stack.enter_context(Route())
        own = stack.enter_context(Descriptor(os.dup(program.fileno())))
        try:
            if old is None:
                route.set_xdp(interface.ifindex, own.fileno(), flags | _UPDATE_IF_NOEXIST)
            else:
                route.set_xdp(interface.ifindex, own.fileno(), flags | _REPLACE, old.fileno())
        except KernelError as error:
            raise _explain(error, interface, description) from None

        def remove() -> None:
            try:
                route.set_xdp(interface.ifindex, -1, flags | _REPLACE, own.fileno())
            except KernelError as error:
                if error.errno not in _GONE:
                    raise

        return Link(description, undo=remove, held=stack.pop_all())


def _explain(error: KernelError, interface: Interface, description: str) -> AttachError:
    busy = {errno.EBUSY: f"{interface} already has an XDP program"}
    fix = f"show it with: ip link show dev {interface}" if error.errno in busy else ""
    return attach_error(
        error, description, {**_REFUSED, **busy}, "CAP_BPF", "CAP_NET_ADMIN", fix=fix
    )
