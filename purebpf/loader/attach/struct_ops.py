"""struct_ops maps: registers the functions of a table with the kernel.

Writing the table registers it (Linux 5.6, commit 85d33df357b6), or, with BPF_F_LINK, a link does
(6.4, commit 68b04864ca42). Source: kernel/bpf/bpf_struct_ops.c.
"""

from __future__ import annotations

import errno

from purebpf.abi.bpf import BPF_F_LINK, bpf_attach_type
from purebpf.errors import AttachError, KernelError
from purebpf.loader.maps.map import Map
from purebpf.loader.maps.map_base import MapHandle
from purebpf.loader.programs.link import Link
from purebpf.syscall import bpf

__all__ = ["attach", "write_before_link"]

_KEY = bytes(4)


def write_before_link(owner: MapHandle) -> None:
    """Give a map that links register its value, before one does; it keeps the first for ever.

    Nothing is done to a map of another kind, or found elsewhere.

    Raises:
        AttachError: EINVAL, as `attach`.
    """
    if not owner.struct_ops or not owner.info.flags & BPF_F_LINK:
        return
    try:
        _write(owner)
    except AttachError as error:
        if error.errno != errno.EBUSY:
            raise


def attach(owner: MapHandle) -> Link:
    """Register the functions in `owner.struct_ops`.

    Raises:
        AttachError: EEXIST, something of that name is registered; EINVAL, a member that must be
            set is not, or has a value that the kernel does not take; EBUSY, it is registered.
    """
    description = f"struct_ops {owner.name!r}"
    if owner.info.flags & BPF_F_LINK:
        write_before_link(owner)
        try:
            link_fd = bpf.link_create(bpf_attach_type.BPF_STRUCT_OPS, map_fd=owner.fileno())
        except KernelError as error:
            raise _not_registered(error, description) from None
        return Link(description, link=link_fd)
    held = Map.from_fd(owner.fileno())  # what is registered outlives the owner, and must end
    try:
        _write(owner)
    except BaseException:
        held.close()
        raise
    return Link(description, undo=lambda: bpf.map_delete_elem(held.fileno(), _KEY), held=held)


def _write(owner: MapHandle) -> None:
    try:
        bpf.map_update_elem(owner.fileno(), _KEY, owner.struct_ops)
    except KernelError as error:
        raise _not_registered(error, f"struct_ops {owner.name!r}") from None


def _not_registered(error: KernelError, description: str) -> AttachError:
    number = error.errno or 0
    why = {
        errno.EEXIST: "the name is already registered",
        errno.EBUSY: "it is already registered, or still in use after it was",
        errno.EINVAL: "a required member is not set, or the kernel refuses the value of one",
    }.get(number, "")
    return AttachError(error.call, number, description, why=why)
