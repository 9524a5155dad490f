"""Folders in a bpf file system that only root and this user decide on."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import KernelError
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.folder import Folder

__all__ = ["lock_folder", "reach_bpffs"]


def reach_bpffs(bpffs: str) -> Folder:
    """The root of a bpf file system that no other user can replace.

    Raises:
        KernelError: EINVAL, it is another file system; as `Folder.reach`.
    """
    root = Folder.reach(bpffs)
    if root.is_bpf:
        return root
    root.close()
    why = f"{bpffs} is not a bpf file system"
    raise KernelError("pin", errno.EINVAL, why=why, fix=f"mount -t bpf -o mode=0700 bpf {bpffs}")


@contextmanager
def lock_folder(folder: Folder) -> Iterator[None]:
    """Let one process at a time in. Who can list the folder can lock it.

    Raises:
        KernelError: EACCES.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        opened = Descriptor(os.open(".", flags, dir_fd=folder.fileno()))
    except OSError as error:
        raise KernelError("open", error.errno or 0, folder.path) from None
    with opened:
        fcntl.flock(opened.fileno(), fcntl.LOCK_EX)
        yield
