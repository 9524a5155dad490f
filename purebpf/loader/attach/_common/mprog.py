"""The order of programs at one hook: tcx and netkit (Linux 6.6), cgroups (6.17).

Commit 053c8e1f235d, "bpf: Add generic attach/detach/query API for multi-progs"; for cgroups
commit 120933984460, "bpf: Implement mprog API on top of existing cgroup progs".

Without a wish, it runs last. A revision counts the changes of a hook: the kernel refuses (ESTALE)
when it is no longer the one that was looked at.
"""

from __future__ import annotations

import errno
from typing import Literal

from purebpf.errors import AttachError, KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.tuples import NamedTuple

__all__ = ["ALLOW_MULTI", "LINK", "REPLACE", "Neighbour", "Order", "explain_refusal", "order"]

ALLOW_MULTI, REPLACE = 1 << 1, 1 << 2
_BEFORE, _AFTER, _PREORDER, LINK = 1 << 3, 1 << 4, 1 << 6, 1 << 13
"""BPF_F_BEFORE and so on, of BPF_PROG_ATTACH and BPF_LINK_CREATE."""

Neighbour = Program | Link | Literal["all"] | None
"""What a program is to run before or after: another one, its link, or all of them."""


class Order(NamedTuple):
    """The wish as the kernel takes it: attach flags, the neighbour's descriptor, the revision."""

    flags: int = 0
    relative_fd: int = 0
    revision: int = 0

    @property
    def asked(self) -> bool:
        """True if a position was requested, which an older kernel must refuse."""
        return self != Order()


def order(
    before: Neighbour = None,
    after: Neighbour = None,
    revision: int = 0,
    *,
    preorder: bool = False,
) -> Order:
    """Put `before=` and `after=` into the kernel's words.

    Raises:
        TypeError: both were passed, or a neighbour that is not a program or link.
        NotSupportedError: the neighbour is a link without a bpf_link; give its program.
        ValueError: the neighbour is closed.
    """
    if before is not None and after is not None:
        raise TypeError("before= and after= exclude each other")
    flags = _PREORDER if preorder else 0
    neighbour = before if before is not None else after
    if neighbour is None:
        return Order(flags, 0, revision)
    flags |= _BEFORE if before is not None else _AFTER
    if neighbour == "all":
        return Order(flags, 0, revision)
    if isinstance(neighbour, Link):
        return Order(flags | LINK, neighbour.fileno(), revision)
    if isinstance(neighbour, Program):
        return Order(flags, neighbour.fileno(), revision)
    raise TypeError(f'expected a program, a link or "all", got {neighbour!r}')


def explain_refusal(error: KernelError, description: str, asked: Order) -> AttachError:
    """The error of an attachment with an order, on a kernel that has them."""
    reasons = {
        errno.ESTALE: f"the hook has changed: its revision is no longer {asked.revision}",
        errno.EEXIST: "the program is already attached there",
        errno.ENOENT: "the program to run before or after, or to replace, is not attached there",
        errno.ERANGE: "the hook already has 64 programs, the kernel's maximum",
        errno.E2BIG: "the hook already has 64 programs, the kernel's maximum",
    }
    if asked.relative_fd and not asked.flags & LINK:
        reasons[errno.EINVAL] = "the program before or after has a bpf_link: pass its link instead"
    return attach_error(error, description, reasons)
