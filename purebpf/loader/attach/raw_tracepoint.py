"""Attach to a raw tracepoint: the program gets the tracepoint's own arguments (Linux 4.17).

Commit c4f6699dfcb8.
"""

from __future__ import annotations

import errno

from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf

__all__ = ["attach", "explain_refusal"]


def attach(program: Program, target: str | None, *, cookie: int = 0) -> Link:
    """Run `program` whenever raw tracepoint `target` is passed: `"sched_switch"`.

    By default `target` is the tracepoint that its section names. `cookie` is the value of
    bpf_get_attach_cookie() (Linux 6.10, commit 68ca5d4eebb8).

    Raises:
        TypeError: no target, and none in the section name.
        ValueError: the program is closed.
        AttachError: ENOENT, no such tracepoint.
        NotSupportedError: a cookie, and a kernel that has none.
    """
    where = program.target if target is None else target
    if not where:
        raise TypeError(f"program {program.name!r}: target required: a raw tracepoint")
    description = f"program {program.name!r} on raw tracepoint {where}"
    try:
        return Link(description, link=bpf.raw_tracepoint_open(program.fileno(), where, cookie))
    except KernelError as error:
        raise explain_refusal(error, description, cookie=cookie) from None


def explain_refusal(
    error: KernelError, description: str, *, cookie: int
) -> AttachError | NotSupportedError:
    """The error of an attachment to a raw or BTF tracepoint, explained."""
    if cookie and error.errno in (errno.EINVAL, errno.E2BIG):
        return NotSupportedError("a cookie for a raw tracepoint", f"{error}; needs Linux 6.10")
    why = "this kernel does not have this tracepoint; the name is without the category"
    return attach_error(error, description, {errno.ENOENT: why})
