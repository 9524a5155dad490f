"""Pins in a bpf file system: made, and opened as what was asked for."""

from __future__ import annotations

import errno
import os

from purebpf.errors import KernelError
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor

__all__ = [
    "BPFFS",
    "make_directory",
    "open_link",
    "open_map",
    "open_pinned",
    "open_program",
    "pin",
    "require_map",
]

BPFFS = "/sys/fs/bpf"
"""The usual mount point of the bpf file system."""


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


def open_program(path: str) -> Descriptor:
    """The program pinned at `path`.

    Raises:
        KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is no program.
    """
    return _open(path, "program", ("bpf-prog",))


def open_link(path: str) -> Descriptor:
    """The link pinned at `path`.

    Raises:
        KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is no link.
    """
    return _open(path, "link", ("bpf_link", "bpf-link"))


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


def _open(path: str, wanted: str, kinds: tuple[str, ...]) -> Descriptor:
    descriptor = open_pinned(path)
    # BPF_OBJ_GET_INFO_BY_FD answers for maps, programs and links alike, without saying which.
    found = os.readlink(f"/proc/self/fd/{descriptor.fileno()}")
    kind = found.removeprefix("anon_inode:").strip("[]")
    if kind in kinds:
        return descriptor
    descriptor.close()
    why = f"it is no {wanted} but {kind}"
    raise KernelError("bpf(BPF_OBJ_GET)", errno.EINVAL, path, why=why)


def _explained(error: KernelError, what: str, needed: str) -> KernelError:
    from purebpf.kernel.host.privilege import explained

    return explained(error, what, needed)
