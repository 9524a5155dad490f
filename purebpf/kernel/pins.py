"""Opening what is pinned in a bpf file system, and nothing but what was asked for."""

from __future__ import annotations

import errno
import os

from purebpf.errors import KernelError
from purebpf.kernel.map_pin import open_pinned, pin
from purebpf.syscall.descriptor import Descriptor

__all__ = ["open_link", "open_program", "pin"]


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
