"""Attach to a cgroup (v2): programs that see the sockets and devices of processes in or below it.

By a bpf_link (Linux 5.7, commit af6eea57437a), else by BPF_PROG_ATTACH (4.10, commit f4324551489e;
several programs 4.15, commit 324bda9e6c5a). Every program attached here lets others be attached,
too, here and below.
"""

from __future__ import annotations

import errno
import os

from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.loader.attach._common.hooks import attach_type_of
from purebpf.loader.attach._common.mprog import (
    ALLOW_MULTI,
    REPLACE,
    Neighbour,
    Order,
    explain_refusal,
    order,
)
from purebpf.loader.attach._common.places import Cgroup, open_cgroup
from purebpf.loader.attach._common.prog_attach import attach_plainly
from purebpf.loader.host import cgroups
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor

__all__ = ["attach"]


def attach(
    program: Program,
    target: Cgroup | None = None,
    *,
    kind: str | int | None = None,
    before: Neighbour = None,
    after: Neighbour = None,
    preorder: bool = False,
    revision: int = 0,
    replace: Program | None = None,
) -> Link:
    """Run `program` for the processes of the cgroup `target` and of those below it.

    Args:
        program: a `cgroup/...`, `cgroup_skb/...`, `sockops` or `lsm_cgroup/...` program.
        target: the cgroup's directory.
        kind: which hook, as in a section's name: `"cgroup/connect4"`; by default the one that the
            program's own section names.
        before: run it before this program or link of the same cgroup, or before `"all"` (Linux
            6.17).
        after: likewise.
        preorder: run it before the programs of the cgroups below, not after them (Linux 6.15,
            commit 4b82b181a26c, "bpf: Allow pre-ordering for bpf cgroup progs").
        revision: only if the hook is at this revision (`Program.query`; Linux 6.17).
        replace: a program that was attached here without a bpf_link, to take its place (Linux
            5.6); the new one then has none either. A `Link` is updated instead.

    Raises:
        TypeError: no target; both before and after; replace, and an order.
        ValueError: an unknown kind; the program is closed.
        KernelError: ENOENT, there is no such directory.
        AttachError: EBADF, it is not a cgroup2 directory; EPERM, no CAP_NET_ADMIN, or a program of
            a cgroup above allows no others; ESTALE, another revision.
        NotSupportedError: an order, and a kernel that has none.
    """
    if not isinstance(target, str | os.PathLike) and not hasattr(target, "fileno"):
        raise TypeError(f"program {program.name!r}: target required: a cgroup directory")
    assert target is not None
    attach_type = _attach_type(program, kind)
    link_order = order(before, after, revision, preorder=preorder)
    description = f"program {program.name!r} on cgroup {_name(target)}"
    if replace is not None:
        if link_order.asked:
            raise TypeError("replace= keeps the position: before= and after= cannot be set")
        fields = {"attach_flags": ALLOW_MULTI | REPLACE, "replace_bpf_fd": replace.fileno()}
        return _plainly(program, target, attach_type, description, fields)
    with open_cgroup(target) as cgroup:
        try:
            return Link(
                description,
                link=bpf.link_create(
                    attach_type,
                    prog_fd=program.fileno(),
                    target_fd=cgroup.fileno(),
                    flags=link_order.flags,
                    cgroup_relative_fd=link_order.relative_fd,
                    cgroup_expected_revision=link_order.revision,
                ),
            )
        except KernelError as error:
            if link_order.asked and not _has_order(cgroup, attach_type):
                feature = f"an order for {description}"
                raise NotSupportedError(feature, f"{error}; needs Linux 6.17") from None
            if error.errno != errno.EINVAL or link_order.asked:
                raise _explain_refusal(error, description, link_order) from None
    # Before Linux 5.7 there was no such link; if that was not the reason, this fails as well.
    return _plainly(program, target, attach_type, description, {"attach_flags": ALLOW_MULTI})


def _attach_type(program: Program, kind: str | int | None) -> int:
    if kind is not None:
        return attach_type_of(kind)
    if program.definition is None:
        raise TypeError(
            f'program {program.name!r}: attach type required: kind="cgroup/connect4" or another'
        )
    return program.attach_type


def _name(target: Cgroup) -> str:
    if isinstance(target, str | os.PathLike):
        return os.fspath(target)
    return proc.descriptor(target.fileno())


def _plainly(
    program: Program, target: Cgroup, attach_type: int, description: str, fields: dict[str, int]
) -> Link:
    cgroup = open_cgroup(target)
    try:
        return attach_plainly(program, cgroup, attach_type, description, **fields)
    except KernelError as error:
        raise _explain_refusal(error, description, Order()) from None


def _has_order(cgroup: Descriptor, attach_type: int) -> bool:
    """Return True if this kernel orders the programs of a cgroup: then it also counts revisions."""
    from purebpf.loader.attach.query import query

    try:
        return query(cgroup, attach_type).revision > 0
    except (KernelError, NotSupportedError):
        return False


def _explain_refusal(error: KernelError, description: str, asked: Order) -> AttachError:
    number = error.errno or 0
    if number == errno.EBADF:
        why = f"the target is not a cgroup v2 directory; {cgroups.where()}"
        return AttachError(error.call, number, description, why=why)
    if number == errno.EPERM:
        from purebpf.loader.host.privilege import advise_or

        above = "an ancestor cgroup has a program without BPF_F_ALLOW_MULTI"
        why, fix = advise_or("CAP_BPF", "CAP_NET_ADMIN", otherwise=above)
        return AttachError(error.call, number, description, why=why, fix=fix)
    return explain_refusal(error, description, asked)
