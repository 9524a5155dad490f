"""Maps with a name in a bpf file system: pinned, opened, shared between loads."""

from __future__ import annotations

import errno
import os

from purebpf.errors import KernelError
from purebpf.kernel import map_kinds
from purebpf.kernel.map_create import fitted
from purebpf.kernel.map_info import MapInfo
from purebpf.spec import MapSpec
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor

__all__ = [
    "BPFFS",
    "differences",
    "make_directory",
    "open_id",
    "open_map",
    "open_pinned",
    "pin",
    "require_map",
]

BPFFS = "/sys/fs/bpf"
"""Where everybody mounts a bpf file system."""

_ADDED_BY_KERNEL = 0x80
"""BPF_F_RDONLY_PROG, which the kernel sets for DEVMAPs (dev_map_alloc)."""


def pin(fd: int, path: str) -> None:
    """Pin an object at `path` in a bpf file system.

    Raises:
        KernelError: EEXIST, there is something; EPERM, no bpf file system, or no permission;
            ENOENT, no such directory.
    """
    try:
        bpf.obj_pin(fd, path)
    except KernelError as error:
        why = fix = ""
        directory = os.path.dirname(path) or "."
        if error.errno == errno.ENOENT and not os.path.isdir(directory):
            why = f"there is no directory {directory}"
        elif error.errno == errno.EPERM and "." in os.path.basename(path):
            why = "names in a bpf file system have no dots"
        elif error.errno in (errno.EPERM, errno.ENOENT):  # ENOENT: of sysfs, which makes no files
            why = f"{path} is not in a bpf file system"
            why += ", or this process lacks CAP_BPF" if error.errno == errno.EPERM else ""
            fix = f"pin below {BPFFS}; if need be: mount -t bpf -o mode=0700 bpf {BPFFS}"
        elif error.errno == errno.EEXIST:
            why, fix = f"{path} is there already", f"rm {path}"
        raise KernelError(error.call, error.errno or 0, path, why=why, fix=fix) from None


def make_directory(path: str) -> None:
    """Make a directory for pins, for its owner alone, as libbpf does; one that is there will do.

    Raises:
        KernelError: ENOENT, that which it is to be in is not there either; EACCES, EROFS.
    """
    try:
        os.mkdir(path or ".", 0o700)
    except FileExistsError:
        return
    except OSError as error:
        raise KernelError("mkdir", error.errno or 0, path) from None


def open_pinned(path: str, flags: int = 0) -> Descriptor:
    """Open what is pinned at `path`: a map, a program or a link.

    Raises:
        KernelError: ENOENT, nothing is; EPERM or EACCES, it may not be opened.
    """
    try:
        return bpf.obj_get(path, file_flags=flags)
    except KernelError as error:
        if error.errno == errno.EPERM:
            raise _explained(error, path, "CAP_BPF") from None
        why = "nothing is pinned there" if error.errno == errno.ENOENT else ""
        raise KernelError(error.call, error.errno or 0, path, why=why) from None


def open_map(path: str, flags: int = 0) -> Descriptor:
    """Open the map that is pinned at `path`.

    Raises:
        KernelError: as `open_pinned`; EINVAL, it is no map.
    """
    descriptor = open_pinned(path, flags)
    try:
        require_map(descriptor.fileno(), path)
    except BaseException:
        descriptor.close()
        raise
    return descriptor


def open_id(map_id: int, flags: int = 0) -> Descriptor:
    """Open a map by its id; needs CAP_SYS_ADMIN.

    Raises:
        KernelError: ENOENT, there is no such map (any more); EPERM, no capability.
    """
    try:
        return bpf.map_get_fd_by_id(map_id, flags)
    except KernelError as error:
        what = f"map {map_id}"
        if error.errno == errno.EPERM:
            raise _explained(error, what, "CAP_SYS_ADMIN") from None
        why = "there is no map of this id" if error.errno == errno.ENOENT else ""
        raise KernelError(error.call, error.errno or 0, what, why=why) from None


def _explained(error: KernelError, what: str, needed: str) -> KernelError:
    from purebpf.kernel.privilege import explained

    return explained(error, what, needed)


def require_map(fd: int, what: str = "") -> None:
    """Refuse what is no map: a pin or a descriptor may be of a program, a link or a file.

    The info command would answer for programs and links too, with another struct.

    Raises:
        KernelError: EINVAL, it is something else; says what. EBADF, it is nothing.
    """
    kind = proc.descriptor(fd).removeprefix("anon_inode:").strip("[]")
    if kind != "bpf-map":
        call = "bpf(BPF_OBJ_GET_INFO_BY_FD)"
        what = what or f"descriptor {fd}"
        raise KernelError(call, errno.EINVAL, what, why=f"it is a {kind}, no map")


def differences(spec: MapSpec, info: MapInfo) -> list[str]:
    """How a map in the kernel differs from what `spec` would make; empty: it can be shared."""
    asked = fitted(spec)
    flags = info.flags
    if info.type in map_kinds.REDIRECTS and not asked.flags & _ADDED_BY_KERNEL:
        flags &= ~_ADDED_BY_KERNEL
    rows = (
        ("type", map_kinds.type_name(asked.type), map_kinds.type_name(info.type)),
        ("key_size", asked.key_size, info.key_size),
        ("value_size", asked.value_size, info.value_size),
        ("max_entries", asked.max_entries, info.max_entries),
        ("map_flags", hex(asked.flags), hex(flags)),
        ("map_extra", asked.map_extra, info.map_extra),
    )
    return [f"{name} {theirs}, not {ours}" for name, ours, theirs in rows if ours != theirs]
