"""The programs attached to a place: BPF_PROG_QUERY.

For cgroups, interfaces, network namespaces, maps of sockets and infrared receivers.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.attach._common.hooks import attach_type_of
from purebpf.loader.attach._common.places import open_cgroup, open_namespace, open_receiver
from purebpf.loader.programs.link import Usable
from purebpf.syscall import bpf
from purebpf.tuples import NamedTuple

__all__ = ["Attached", "AttachedProgram", "query"]

_EFFECTIVE = 1  # BPF_F_QUERY_EFFECTIVE
_U32 = 4
_ROOM, _MOST = 64, 1 << 16
"""Programs of one hook: the kernel's limit for most and a first guess for the rest, and an end."""

_DEVICES = (
    bpf_attach_type.BPF_TCX_INGRESS,
    bpf_attach_type.BPF_TCX_EGRESS,
    bpf_attach_type.BPF_NETKIT_PRIMARY,
    bpf_attach_type.BPF_NETKIT_PEER,
)
_NAMESPACES = (bpf_attach_type.BPF_FLOW_DISSECTOR, bpf_attach_type.BPF_SK_LOOKUP)
_SOCKMAPS = (
    bpf_attach_type.BPF_SK_SKB_STREAM_PARSER,
    bpf_attach_type.BPF_SK_SKB_STREAM_VERDICT,
    bpf_attach_type.BPF_SK_SKB_VERDICT,
    bpf_attach_type.BPF_SK_MSG_VERDICT,
)
_ALONE = (*_NAMESPACES, *_SOCKMAPS, bpf_attach_type.BPF_LIRC_MODE2)
"""The kernel tells the programs of these, and nothing about each."""

Target = str | int | os.PathLike[str] | Usable | None


class AttachedProgram(NamedTuple):
    """One program: its id, its link's id, its flags.

    The kernel tells links and their programs apart for interfaces only: elsewhere `link_id` is 0.
    """

    id: int
    link_id: int
    flags: int


class Attached(NamedTuple):
    """The programs of a hook, in running order.

    Attributes:
        programs: each; `Program.from_id` and `Link.from_id` open them.
        flags: the attach flags of the hook (a cgroup's BPF_F_ALLOW_MULTI).
        revision: how often the hook has changed; 0 on kernels that do not count (before 6.6 for
            interfaces, commit 053c8e1f235d; 6.17 for cgroups, commit 120933984460).
    """

    programs: tuple[AttachedProgram, ...]
    flags: int
    revision: int


def query(target: Target, kind: str | int, *, effective: bool = False) -> Attached:
    """The programs attached to `target`.

    Args:
        target: the target of `Program.attach` for this kind: a cgroup's directory, an interface's
            name or index, a network namespace (None: this one), a socket map, `"/dev/lirc0"`.
        kind: the hook, as a section names it: `"cgroup/connect4"`, `"tcx/ingress"`, `"sk_lookup"`.
        effective: for a cgroup, include programs of the cgroups above, which run for it as well.

    Raises:
        TypeError: a target that does not go with the kind.
        ValueError: an unknown kind, or no such interface; lists similar ones.
        NotSupportedError: this kernel cannot list such programs.
        KernelError: EPERM, no CAP_NET_ADMIN; EBADF, the target is not of that kind; ENOENT.
    """
    attach_type = attach_type_of(kind)
    lists: tuple[str, ...] = ("prog_ids", "prog_attach_flags")
    if attach_type in _DEVICES:
        lists += ("link_ids",)
    elif attach_type in _ALONE or effective:
        lists = ("prog_ids",)
    with ExitStack() as stack:
        target_fd = _place(target, attach_type, stack)
        room = _ROOM
        while True:
            try:
                return _ask(target_fd, attach_type, lists, room, _EFFECTIVE if effective else 0)
            except KernelError as error:
                if error.errno == errno.ENOSPC and room < _MOST:
                    room *= 4
                elif error.errno in (errno.EINVAL, errno.E2BIG) and len(lists) > 1:
                    # Before Linux 6.0 (commit b79c9fc9551b) the others are not known.
                    lists = lists[:1]
                else:
                    raise _explain_refusal(error, str(kind)) from None


def _place(target: Target, attach_type: int, stack: ExitStack) -> int:
    """Return the descriptor or interface index; `stack` closes descriptors opened here."""
    if attach_type in _DEVICES:
        from purebpf.loader.host.interfaces import find_interface

        if target is not None and not isinstance(target, str | int):
            raise TypeError(f"expected the name or index of an interface, got {target!r}")
        return find_interface(target).ifindex
    if isinstance(target, int):
        raise TypeError(f"expected a path or an object, got the integer {target!r}")
    if attach_type in _NAMESPACES:
        return stack.enter_context(open_namespace(target)).fileno()
    if target is None:
        raise TypeError("target required: a cgroup path, a sockmap or a lirc device")
    if attach_type in _SOCKMAPS:
        if isinstance(target, str | os.PathLike):
            raise TypeError(f"expected a sockmap, got {target!r}")
        return target.fileno()
    if attach_type == bpf_attach_type.BPF_LIRC_MODE2:
        return stack.enter_context(open_receiver(target, "programs attached to it")).fileno()
    return stack.enter_context(open_cgroup(target)).fileno()


def _ask(
    target_fd: int, attach_type: int, lists: tuple[str, ...], room: int, flags: int
) -> Attached:
    memory = {name: bytearray(_U32 * room) for name in lists}
    answer = bpf.prog_query(target_fd, attach_type, query_flags=flags, prog_cnt=room, **memory)
    count, attach_flags, revision = (
        int(answer[name]) for name in ("prog_cnt", "attach_flags", "revision")
    )
    columns = {name: memoryview(data).cast("I") for name, data in memory.items()}
    nothing = memoryview(bytes(_U32 * count)).cast("I")
    rows = zip(
        columns["prog_ids"][:count],
        columns.get("link_ids", nothing),
        columns.get("prog_attach_flags", nothing),
        strict=False,
    )
    return Attached(tuple(map(AttachedProgram._make, rows)), attach_flags, revision)


def _explain_refusal(error: KernelError, kind: str) -> KernelError | NotSupportedError:
    description = f"programs attached to {kind}"
    if error.errno == errno.EPERM:
        from purebpf.loader.host.privilege import explain_eperm

        return explain_eperm(error, description, "CAP_NET_ADMIN")
    if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
        reason = f"this kernel cannot list them, or the target is of another kind: {error}"
        return NotSupportedError(f"listing {description}", reason)
    return KernelError(error.call, error.errno or 0, description)
