"""Attach to an instruction of the kernel, mostly a function's first (kprobe PMU, or tracefs)."""

from __future__ import annotations

import errno
import os

from purebpf.errors import KernelError
from purebpf.late_pattern import compile_later
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.options import at_return, target_of
from purebpf.loader.attach.perf_event import owning_link
from purebpf.loader.perf.probe import Probe
from purebpf.loader.perf.probe_event import open_probe, syscall_function
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program

__all__ = ["attach"]

_PLACE = compile_later(r"((?:[\w-]+:)?[A-Za-z_.$][\w.$]*)(?:\+(0[xX][0-9a-fA-F]+|\d+))?")
_WHY = {
    errno.ENOENT: "this kernel does not have this function, or does not allow probes in it",
    errno.EINVAL: "the kernel's kprobe blacklist has the function, or the offset is not the "
    "start of an instruction",
    errno.EADDRNOTAVAIL: "several functions of this kernel have this name",
    errno.EILSEQ: "the offset is not the start of an instruction",
    errno.EBUSY: "another user has patched this instruction",
}


def attach(
    program: Program, target: str | None = None, *, returns: bool | None = None, cookie: int = 0
) -> Link:
    """Run `program` when a function of the kernel is entered, or returns.

    Args:
        program: a kprobe program.
        target: `"vfs_read"`, `"vfs_read+0x10"`, `"nf_conntrack:nf_conntrack_in"` for one of a
            module; for `SEC("ksyscall")` a system call, `"openat"`; purebpf finds its function.
            Without it, the one that the program's section names.
        returns: at the function's return; by default as the section says (`kretprobe`).
        cookie: the value of bpf_get_attach_cookie() (Linux 5.15).

    Raises:
        TypeError: no target, and none in the section name.
        ValueError: a target that is neither; the program is closed.
        AttachError: ENOENT, EINVAL, EADDRNOTAVAIL: nothing can be probed there.
        NotSupportedError: a kernel without kprobes; a cookie, and a kernel that has none.
    """
    where = target_of(program, target, "target required: a kernel function")
    place_match = _PLACE.fullmatch(where)
    if place_match is None:
        several = '; patterns need SEC("kprobe.multi")' if set(where) & set("*?") else ""
        spelling = "'function' or 'function+8'"
        raise ValueError(f"{where!r} is not a kernel function: expected {spelling}{several}")
    name, offset = place_match[1], int(place_match[2] or "0", 0)
    if program.definition is not None and program.definition.prefix.endswith("syscall"):
        name = syscall_function(name)
    end = at_return(program, returns)
    moment = "return of" if end else "entry to"
    description = (
        f"program {program.name!r} on {moment} kernel function {name}"
        + f"+{offset:#x}" * bool(offset)
    )
    try:
        event = open_probe(Probe("kprobe", os.fsencode(name), offset, end))
    except KernelError as error:
        raise attach_error(error, description, _WHY) from None
    return owning_link(program, event, description, cookie=cookie)
