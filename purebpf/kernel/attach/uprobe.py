"""Attach to a function of a program or library, through the uprobe PMU or tracefs."""

from __future__ import annotations

import errno
import os

from purebpf.abi.sections import find_section
from purebpf.errors import AttachError, KernelError
from purebpf.kernel.attach.perf_event import owning_link
from purebpf.kernel.link import Link
from purebpf.kernel.probe_event import Probe, open_probe
from purebpf.kernel.probe_place import find_file, function_offsets, parse_place
from purebpf.kernel.program import Program

__all__ = ["attach"]

_EVERY = -1
_WHY = {
    errno.EINVAL: "nothing can be probed there: the offset is outside of the file's code, or not "
    "the start of an instruction",
    errno.ESRCH: "there is no such process",
}


def attach(
    program: Program,
    target: str | None = None,
    *,
    pid: int = _EVERY,
    returns: bool | None = None,
    cookie: int = 0,
    semaphore: int = 0,
) -> Link:
    """Run `program` when a function of a file is entered, or returns.

    Args:
        program: a uprobe program.
        target: `"/bin/bash:readline"`, `"libc.so.6:malloc+4"`, `"libc.so.6:memcpy@GLIBC_2.2.5"`,
            or an offset into the file, `"/bin/bash:0x1234"`. A library is searched where the
            dynamic linker would, another file without a `/` in $PATH. Without it, what the
            section says.
        pid: only in this process, 0 for our own; -1 for every one.
        returns: at the function's return; by default as the section says (`uretprobe`).
        cookie: what bpf_get_attach_cookie() returns (Linux 5.15).
        semaphore: the file offset of a 16-bit counter that says somebody is watching (Linux 4.20).

    Raises:
        TypeError: no target, and none in the section name.
        ValueError: a target that is none; the program is closed.
        AttachError: ENOENT, no such file or function; EINVAL, nothing can be probed there.
        FormatError: the file is no ELF file, and no offset was given.
        NotSupportedError: a kernel without uprobes; a cookie, and a kernel that has none.
    """
    where = target or program.target
    if not where:
        raise TypeError(f"program {program.name!r}: which function? 'file:function'")
    place = parse_place(where)
    section = find_section(program.section)
    prefix = section.definition.prefix if section is not None else "uprobe"
    at_return = prefix.startswith("uret") if returns is None else returns
    what = f"program {program.name!r} on {'return of' if at_return else 'entry to'} {where}"
    path = find_file(place.file, what)
    offset = place.offset
    if place.function:
        found = function_offsets(path, place.function)
        if not found:
            raise AttachError(
                "uprobe", errno.ENOENT, what, why=f"{path} has no function {place.function!r}"
            )
        offset += next(iter(found.values()))
    try:
        event = open_probe(
            Probe("uprobe", os.fsencode(path), offset, at_return, pid=pid, semaphore=semaphore)
        )
    except KernelError as error:
        number = error.errno or 0
        why = _WHY.get(number, error.why)
        raise AttachError(error.call, number, what, why=why, fix=error.fix) from None
    return owning_link(program, event, what, cookie=cookie)
