"""BPF tokens: loading without privileges of the machine, where an administrator delegated them.

A bpf file system mounted for a user namespace with `delegate_cmds`, `delegate_maps`,
`delegate_progs` and `delegate_attachs` lets processes of that namespace make tokens, and a token
lets them use the delegated commands (Linux 6.9, commit 35f96de04127). The capabilities CAP_BPF and,
for tracing, CAP_PERFMON or, for packets, CAP_NET_ADMIN are held in the namespace.
"""

from __future__ import annotations

import errno
import os

from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.host.pins import BPFFS
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor, directory

__all__ = ["open_token", "usual_token"]


def usual_token() -> Descriptor | None:
    """A token of the bpf file system where everybody looks for one; None if there is none."""
    try:
        return open_token(BPFFS)
    except (OSError, NotSupportedError):
        return None


def open_token(path: str | os.PathLike[str] | int) -> Descriptor:
    """A token of the bpf file system that is mounted at `path`, or of which that is a descriptor.

    Raises:
        NotSupportedError: a kernel without tokens; the first user namespace, which needs none.
        KernelError: ENOENT, nothing was delegated there; EPERM, another namespace's file system or
            no CAP_BPF in this one; EINVAL, no bpf file system.
        OSError: the path cannot be opened.
    """
    description = f"a BPF token of {path}"
    # A mount made by fsmount(2) is only a place (O_PATH), which the kernel does not take here.
    token_path = f"/proc/self/fd/{path}" if isinstance(path, int) else path
    try:
        with directory(token_path) as opened:
            return bpf.token_create(opened.fileno())
    except KernelError as error:
        number = error.errno or 0
        if number == errno.EOPNOTSUPP:
            reason = (
                "the initial user namespace has no tokens: a process there uses its own "
                "capabilities"
            )
            raise NotSupportedError(description, reason) from None
        why = {
            errno.ENOENT: "the file system was mounted without any delegate_... option",
            errno.EINVAL: (
                "the path is not the root of a bpf file system, or this kernel does not "
                "support tokens"
            ),
            errno.EPERM: "it belongs to another user namespace, or CAP_BPF is missing in this one",
        }.get(number, "")
        raise KernelError(error.call, number, description, why=why) from None
