"""Attach to many functions of one file at once: `uprobe.multi`, `uprobe.session` (Linux 6.6)."""

from __future__ import annotations

import errno
import os
from array import array

from purebpf.abi.sections import find_section
from purebpf.errors import AttachError, KernelError
from purebpf.kernel.link import Link
from purebpf.kernel.probe_place import find_file, function_offsets, parse_place
from purebpf.kernel.program import Program
from purebpf.syscall import bpf

__all__ = ["attach"]

_RETURN = 1  # BPF_F_UPROBE_MULTI_RETURN
_U32 = 0xFFFFFFFF


def attach(
    program: Program,
    target: str | None = None,
    *,
    pid: int = 0,
    returns: bool | None = None,
    cookie: int = 0,
) -> Link:
    """Run `program` when any of the matching functions of a file is entered, or returns.

    Args:
        program: a `uprobe.multi`, `uretprobe.multi` or `uprobe.session` program.
        target: `"/bin/bash:read*"`, `"libc.so.6:*alloc"`: a file, as for `uprobe`, and a pattern
            with `*` and `?`. Without it, what the program's section says.
        pid: only in this process; 0 for every one.
        returns: at the return; by default as the section says. A session has both.
        cookie: what bpf_get_attach_cookie() returns, at each of them.

    Raises:
        TypeError: no target, and none in the section name.
        ValueError: a target that is none; the program is closed.
        AttachError: ENOENT, no such file or functions; EINVAL, not on this kernel.
        FormatError: the file is no ELF file, and no offset was given.
    """
    where = target or program.target
    if not where:
        raise TypeError(f"program {program.name!r}: which functions? 'file:pattern'")
    place = parse_place(where)
    section = find_section(program.section)
    prefix = section.definition.prefix if section is not None else ""
    at_return = prefix.startswith("uret") if returns is None else returns
    what = f"program {program.name!r} on {where}"
    path = find_file(place.file, what)
    found = function_offsets(path, place.function) if place.function else {"": 0}
    if not found:
        why = f"no function of {path} matches {place.function!r}"
        raise AttachError("bpf(BPF_LINK_CREATE)", errno.ENOENT, what, why=why)
    offsets = array("Q", sorted({offset + place.offset for offset in found.values()}))
    try:
        return Link(
            f"{what} ({len(offsets)} functions)",
            link=bpf.link_create(
                program.attach_type,
                prog_fd=program.fileno(),
                uprobe_multi_path=os.fsencode(path) + b"\0",
                uprobe_multi_offsets=offsets.tobytes(),
                uprobe_multi_cookies=array("Q", [cookie] * len(offsets)).tobytes()
                if cookie
                else None,
                uprobe_multi_cnt=len(offsets),
                uprobe_multi_flags=_RETURN if at_return else 0,
                uprobe_multi_pid=pid & _U32,
            ),
        )
    except KernelError as error:
        number = error.errno or 0
        why = {
            errno.EINVAL: "this kernel has no multi-uprobes (Linux 6.6; sessions 6.13)",
            errno.ESRCH: f"there is no process {pid}",
            errno.EBADF: f"{path} is no regular file",
        }.get(number, "")
        raise AttachError(error.call, number, what, why=why) from None
