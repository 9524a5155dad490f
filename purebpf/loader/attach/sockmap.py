"""Attach to a map of sockets: programs see received (`sk_skb`, Linux 4.14) or sent data (`sk_msg`).

By a bpf_link (Linux 6.10, commit 699c23f02c65, "bpf: Add bpf_link support for sk_msg and sk_skb
progs"), else by BPF_PROG_ATTACH. A map has one program of each kind; without links, the last one
that was attached. A socket gets the programs that the map has when it is put in: attach first.
"""

from __future__ import annotations

import errno
import os

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.errors import KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.hooks import attach_type_of
from purebpf.loader.attach._common.prog_attach import attach_plainly
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

__all__ = ["attach"]

_TYPES = (bpf_map_type.BPF_MAP_TYPE_SOCKMAP, bpf_map_type.BPF_MAP_TYPE_SOCKHASH)
_WHY = {
    errno.EBUSY: "the map already has a program of this kind, or of one that excludes it "
    "(sk_skb/verdict and sk_skb/stream_verdict)",
    errno.EOPNOTSUPP: "this kernel was built without stream parsers (CONFIG_BPF_STREAM_PARSER)",
    errno.EINVAL: "the program was loaded for another hook",
}


def attach(program: Program, target: Map | None, *, kind: str | int | None = None) -> Link:
    """Run `program` for the sockets in the map `target`.

    Args:
        program: an `sk_msg` program; an `sk_skb/stream_parser`, which says where messages end; or
            an `sk_skb/stream_verdict` or `sk_skb/verdict`, which says where they go.
        target: a SOCKMAP or SOCKHASH.
        kind: the hook of a bare `SEC("sk_skb")`: `"sk_skb/stream_verdict"`.

    Raises:
        TypeError: no map, or one of another type; no kind, and none in the section's name.
        ValueError: an unknown kind; the program or map is closed.
        AttachError: EBUSY, it has such a program; EPERM, no CAP_NET_ADMIN.
    """
    if not isinstance(target, Map) or target.type not in _TYPES:
        raise TypeError(f"program {program.name!r}: expected a sockmap, got {target!r}")
    attach_type = _attach_type(program, kind)
    description = f"program {program.name!r} on map {target.name!r}"
    try:
        link = bpf.link_create(attach_type, prog_fd=program.fileno(), target_fd=target.fileno())
        return Link(description, link=link)
    except KernelError as error:
        if error.errno != errno.EINVAL:
            raise attach_error(error, description, _WHY, "CAP_NET_ADMIN") from None
    # Before Linux 6.10 there was no such link; if that was not the reason, this fails as well.
    try:
        return attach_plainly(
            program, Descriptor(os.dup(target.fileno())), attach_type, description
        )
    except KernelError as error:
        raise attach_error(error, description, _WHY, "CAP_NET_ADMIN") from None


def _attach_type(program: Program, kind: str | int | None) -> int:
    if kind is not None:
        return attach_type_of(kind)
    if program.type == bpf_prog_type.BPF_PROG_TYPE_SK_MSG:
        return attach_type_of("sk_msg")
    if program.definition is None or not program.definition.attach_type:
        raise TypeError(
            f'program {program.name!r}: attach type required: kind="sk_skb/stream_verdict" or '
            "another"
        )
    return program.definition.attach_type
