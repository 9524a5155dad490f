"""Pins in a bpf file system: made, and opened with a check of their kind."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.errors import KernelError
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.syscall.folder import Node

__all__ = [
    "BPFFS",
    "Pinned",
    "make_directory",
    "open_link",
    "open_map",
    "open_own_map",
    "open_pinned",
    "open_program",
    "pin",
    "require_map",
    "require_program",
    "unpin",
]

BPFFS = "/sys/fs/bpf"
"""The usual mount point of the bpf file system."""


class Pinned(NamedTuple):
    """A pin that this process created.

    Attributes:
        path: where.
        device: st_dev of its file.
        inode: st_ino of its file; `unpin` recognises it by this.
    """

    path: str
    device: int
    inode: int


def pin(fd: int, path: str) -> Pinned:
    """Pin an object at `path` in a bpf file system.

    Raises:
        KernelError: EEXIST, there is something; EPERM, no bpf file system, or no permission;
            ENOENT, no such directory.
    """
    folder, name = os.path.split(path)
    try:
        with _open_directory(folder) as directory:
            bpf.obj_pin(fd, f"{directory.place}/{name}")
            status = os.stat(name, dir_fd=directory.fileno(), follow_symlinks=False)
            return Pinned(path, status.st_dev, status.st_ino)
    except KernelError as error:
        raise _explain_unpinned(error, path) from None


def unpin(pinned: Pinned) -> bool:
    """Remove a pin; False: it is not there any more, or something else is.

    The directory is opened once. A process that replaced it since can make this
    remove nothing but the pin itself.

    Raises:
        OSError: EACCES, EPERM, EROFS.
    """
    folder, name = os.path.split(pinned.path)
    try:
        with _open_directory(folder) as directory:
            status = os.stat(name, dir_fd=directory.fileno(), follow_symlinks=False)
            if (status.st_dev, status.st_ino) != (pinned.device, pinned.inode):
                return False
            os.unlink(name, dir_fd=directory.fileno())
    except FileNotFoundError:
        return False
    except KernelError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise
    return True


def _open_directory(path: str) -> Node:
    """The directory at a path that the caller chose; symbolic links are followed."""
    from purebpf.syscall.folder import Node  # not for maps without a pin

    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        return Node(Descriptor(os.open(path or ".", flags)), path)
    except OSError as error:
        raise KernelError("bpf(BPF_OBJ_PIN)", error.errno or 0, path) from None


def _explain_unpinned(error: KernelError, path: str) -> KernelError:
    why = fix = ""
    directory = os.path.dirname(path) or "."
    if error.errno == errno.ENOENT and not os.path.isdir(directory):
        why = f"directory {directory} does not exist"
    elif error.errno == errno.EPERM and "." in os.path.basename(path):
        why = "names in a bpf file system cannot have dots"
    elif error.errno in (errno.EPERM, errno.ENOENT):  # ENOENT: of sysfs, which makes no files
        why = f"{path} is not in a bpf file system"
        why += ", or this process lacks CAP_BPF" if error.errno == errno.EPERM else ""
        fix = f"pin below {BPFFS}; mount it with: mount -t bpf -o mode=0700 bpf {BPFFS}"
    elif error.errno == errno.EEXIST:
        why, fix = f"{path} already exists", f"rm {path}"
    return KernelError(error.call, error.errno or 0, path, why=why, fix=fix)


def make_directory(path: str) -> None:
    """Make a directory for pins, for its owner alone, as libbpf does; one that is there will do.

    Raises:
        KernelError: ENOENT, its parent directory does not exist; EACCES, EROFS.
    """
    try:
        os.mkdir(path or ".", 0o700)
    except FileExistsError:
        return
    except OSError as error:
        raise KernelError("mkdir", error.errno or 0, path) from None


def open_pinned(path: str, flags: int = 0) -> Descriptor:
    """Open the map, program or link that is pinned at `path`.

    Raises:
        KernelError: ENOENT, nothing is; EPERM or EACCES, it may not be opened.
    """
    try:
        return bpf.obj_get(path, file_flags=flags)
    except KernelError as error:
        if error.errno == errno.EPERM:
            raise _explain(error, path, "CAP_BPF") from None
        why = "nothing is pinned there" if error.errno == errno.ENOENT else ""
        raise KernelError(error.call, error.errno or 0, path, why=why) from None


def open_map(path: str, flags: int = 0) -> Descriptor:
    """Open the map that is pinned at `path`.

    Raises:
        KernelError: as `open_pinned`; EINVAL, it is not a map.
    """
    descriptor = open_pinned(path, flags)
    try:
        require_map(descriptor.fileno(), path)
    except BaseException:
        descriptor.close()
        raise
    return descriptor


def open_own_map(path: str) -> Descriptor:
    """Open the map pinned at `path`, if no other user could have put it there, or write to it.

    Raises:
        KernelError: as `open_map`; EPERM, it, or a directory above, is another user's.
    """
    try:
        with _own_pin(path) as pin_:
            return open_map(pin_.place)
    except KernelError as error:
        pin_path = path if error.what.startswith("/proc/self/fd/") else error.what
        why, fix = error.why, error.fix
        if error.errno == errno.EPERM and error.call == "open":
            fix = "if it is to be shared: load(..., maps={name: Map.open(path)})"
        elif error.errno == errno.ENOENT:
            why = "nothing is pinned there"
        raise KernelError(error.call, error.errno or 0, pin_path, why=why, fix=fix) from None


def _own_pin(path: str) -> Node:
    """Open the pin at a path, following a symbolic link."""
    from purebpf.syscall.folder import Folder, Node

    folder, name = os.path.split(path)
    with Folder.reach(folder, outside=True, follow=True) as directory:
        entry = directory.find(name)
        if entry is None:
            raise KernelError("open", errno.ENOENT, path)
        with entry:
            entry.require_trusted(outside=True)
        try:
            opened = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=directory.fileno())
        except OSError as error:
            raise KernelError("open", error.errno or 0, path) from None
        node = Node(Descriptor(opened), path)
    with ExitStack() as unless_trusted:
        unless_trusted.enter_context(node)
        node.require_trusted(outside=True)
        unless_trusted.pop_all()
    return node


def open_program(path: str) -> Descriptor:
    """The program pinned at `path`.

    Raises:
        KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is not a program.
    """
    return _open(path, "program", ("bpf-prog",))


def open_link(path: str) -> Descriptor:
    """The link pinned at `path`.

    Raises:
        KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is not a link.
    """
    return _open(path, "link", ("bpf_link", "bpf-link"))


def require_map(fd: int, description: str = "") -> None:
    """Refuse anything but a map: a pin or a descriptor may be a program's, a link's or a file's.

    The info command would answer for programs and links too, with another struct.

    Raises:
        KernelError: EINVAL, it is another object, which the text names. EBADF, it is nothing.
    """
    _require(fd, "bpf-map", "a map", description)


def require_program(fd: int) -> None:
    """Refuse anything but a program. Raises as `require_map`."""
    _require(fd, "bpf-prog", "a program", "")


def _require(fd: int, kind: str, noun: str, description: str) -> None:
    actual = proc.descriptor(fd).removeprefix("anon_inode:").strip("[]")
    if actual != kind:
        call = "bpf(BPF_OBJ_GET_INFO_BY_FD)"
        description = description or f"descriptor {fd}"
        raise KernelError(call, errno.EINVAL, description, why=f"it is a {actual}, not {noun}")


def _open(path: str, wanted: str, kinds: tuple[str, ...]) -> Descriptor:
    descriptor = open_pinned(path)
    # BPF_OBJ_GET_INFO_BY_FD answers for maps, programs and links alike, without saying which.
    link_text = os.readlink(f"/proc/self/fd/{descriptor.fileno()}")
    kind = link_text.removeprefix("anon_inode:").strip("[]")
    if kind in kinds:
        return descriptor
    descriptor.close()
    why = f"the pinned object is a {kind}, not a {wanted}"
    raise KernelError("bpf(BPF_OBJ_GET)", errno.EINVAL, path, why=why)


def _explain(error: KernelError, description: str, needed: str) -> KernelError:
    from purebpf.loader.host.privilege import explain_eperm

    return explain_eperm(error, description, needed)
