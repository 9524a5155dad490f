"""Attach a `tp_btf` program to the tracepoint it was loaded for (Linux 5.5)."""

from __future__ import annotations

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import KernelError
from purebpf.kernel.attach.raw_tracepoint import refused
from purebpf.kernel.link import Link
from purebpf.kernel.program import Program
from purebpf.syscall import bpf

__all__ = ["attach"]


def attach(program: Program, target: None = None, *, cookie: int = 0) -> Link:
    """Run `program` whenever its tracepoint is passed.

    The tracepoint was chosen at load, when the verifier checked its arguments: there is no other
    `target`. `cookie` is what bpf_get_attach_cookie() returns (Linux 6.10).

    Raises:
        TypeError: a target.
        ValueError: the program is closed.
        AttachError: the kernel refused.
        NotSupportedError: a cookie, and a kernel that has none.
    """
    if target is not None:
        raise TypeError(f"program {program.name!r} can only go where it was loaded for")
    what = f"program {program.name!r} on BTF tracepoint {program.target}"
    try:
        if not cookie:
            return Link(what, link=bpf.raw_tracepoint_open(program.fileno()))
        return Link(
            what,
            link=bpf.link_create(
                bpf_attach_type.BPF_TRACE_RAW_TP, prog_fd=program.fileno(), tracing_cookie=cookie
            ),
        )
    except KernelError as error:
        raise refused(error, what, cookie=cookie) from None
