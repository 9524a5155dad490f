"""Maps that exist already: opened by id, and compared with the spec that wants to share them."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from purebpf.errors import KernelError
from purebpf.loader.maps import map_traits
from purebpf.loader.maps.map_create import fit_sizes
from purebpf.loader.maps.map_info import MapInfo
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

__all__ = ["differences", "open_id", "shape_differences"]

_ADDED_BY_KERNEL = 0x80
"""BPF_F_RDONLY_PROG, which the kernel sets for DEVMAPs (dev_map_alloc)."""


def open_id(map_id: int, flags: int = 0) -> Descriptor:
    """Open a map by its id; needs CAP_SYS_ADMIN.

    Raises:
        KernelError: ENOENT, there is no such map (any more); EPERM, no capability.
    """
    try:
        return bpf.map_get_fd_by_id(map_id, flags)
    except KernelError as error:
        description = f"map {map_id}"
        if error.errno == errno.EPERM:
            raise _explain(error, description, "CAP_SYS_ADMIN") from None
        why = "no map has this ID" if error.errno == errno.ENOENT else ""
        raise KernelError(error.call, error.errno or 0, description, why=why) from None


def _explain(error: KernelError, description: str, needed: str) -> KernelError:
    from purebpf.loader.host.privilege import explain_eperm

    return explain_eperm(error, description, needed)


def differences(spec: MapSpec, info: MapInfo) -> list[str]:
    """Return how a map in the kernel differs from the one that `spec` would make; empty: it can
    be shared.
    """
    asked = fit_sizes(spec)
    flags = info.flags
    if info.type in map_traits.REDIRECTS and not asked.flags & _ADDED_BY_KERNEL:
        flags &= ~_ADDED_BY_KERNEL
    rows = (
        ("max_entries", asked.max_entries, info.max_entries),
        ("map_flags", hex(asked.flags), hex(flags)),
        ("map_extra", asked.map_extra, info.map_extra),
    )
    return [*shape_differences(spec, info), *_differing(rows)]


def shape_differences(spec: MapSpec, info: MapInfo) -> list[str]:
    """Return how keys and values differ in properties that a program compiled for `spec` relies
    on.
    """
    asked = fit_sizes(spec)
    rows = (
        ("type", map_traits.type_name(asked.type), map_traits.type_name(info.type)),
        ("key_size", asked.key_size, info.key_size),
        ("value_size", asked.value_size, info.value_size),
    )
    return _differing(rows)


def _differing(rows: Iterable[tuple[str, object, object]]) -> list[str]:
    return [f"{name} {theirs}, not {ours}" for name, ours, theirs in rows if ours != theirs]
