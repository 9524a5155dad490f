"""Attach to a function of a program or library, through the uprobe PMU or tracefs."""

from __future__ import annotations

import errno
import os

from purebpf.errors import KernelError
from purebpf.files.regular_file import opened_same
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.options import at_return, target_of
from purebpf.loader.attach._common.probe_place import ProbePlaces, find_places
from purebpf.loader.attach.perf_event import owning_link
from purebpf.loader.perf.probe import Probe
from purebpf.loader.perf.probe_event import open_probe
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program

__all__ = ["attach", "attach_at"]

_EVERY = -1
_WHY = {
    errno.EINVAL: "the offset is outside of the file's code, or not the start of an instruction",
    errno.ESRCH: "the process does not exist",
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

    Needs CAP_SYS_ADMIN since Linux 6.16, and in the stable kernels of July 2025 (commit
    ba677dbe77af, "perf: Revert to requiring CAP_SYS_ADMIN for uprobes"); CAP_PERFMON before. For a
    `uprobe.multi` program CAP_PERFMON is enough.

    At a return the kernel replaces the return address on the stack. A C++ exception, a Rust panic,
    a cancelled thread that unwinds through it, or a Go stack that grows ends the program.

    Args:
        program: a uprobe program.
        target: `"/bin/bash:readline"`, `"libc.so.6:malloc+4"`, `"libc.so.6:memcpy@GLIBC_2.2.5"`,
            `"./server:db::Pool::get(int)"` (C++ and Rust names as they are printed, parameters
            optional), or an offset into the file, `"/bin/bash:0x1234"`. A file without a `/` is the
            one that process `pid` has mapped; else a library is searched where the dynamic linker
            would, another file in $PATH. The path of a container's file begins with
            `/proc/PID/root`, and a deleted program is `/proc/PID/exe`. By default, the target in
            the section.
        pid: only in this process, 0 for our own; -1 for every one.
        returns: at the function's return; by default as the section says (`uretprobe`).
        cookie: the value of bpf_get_attach_cookie() (Linux 5.15).
        semaphore: the file offset of a 16-bit counter of attached tracers (Linux 4.20,
            commit a6ca88b241d5, "trace_uprobe: support reference counter in fd-based uprobe").

    Raises:
        TypeError: no target, and none in the section name.
        ValueError: a target that is none, or several functions; the program is closed.
        AttachError: ENOENT, no such file or function, a function that only chooses another (IFUNC),
            or a file that was exchanged after that; EINVAL, nothing can be probed there.
        KernelError: EACCES, no CAP_SYS_ADMIN or CAP_PERFMON.
        FormatError: the file is not an ELF file, and the target is not an offset.
        NotSupportedError: a kernel without uprobes; a cookie, and a kernel that has none.
    """
    where = target_of(program, target, "target required: 'file:function'")
    end = at_return(program, returns)
    description = f"program {program.name!r} on {'return of' if end else 'entry to'} {where}"
    places = find_places(where, description, pid)
    if len(places.offsets) > 1:
        raise ValueError(
            f"{where!r} matches {len(places.offsets)} functions, which needs "
            'SEC("uprobe.multi"); an overloaded C++ function is named with its parameters'
        )
    return attach_at(
        program, places, description, pid=pid, returns=end, cookie=cookie, semaphore=semaphore
    )


def attach_at(
    program: Program,
    places: ProbePlaces,
    description: str,
    *,
    pid: int = _EVERY,
    returns: bool | None = None,
    cookie: int = 0,
    semaphore: int = 0,
) -> Link:
    """As `attach`, at the first of the places; `description` is for errors."""
    with opened_same(places.path, places.identity, description) as path:
        file = Probe(
            "uprobe",
            os.fsencode(path),
            places.offsets[0],
            at_return(program, returns),
            pid=pid,
            semaphore=semaphore,
        )
        try:
            event = open_probe(file)
        except KernelError as error:
            raise attach_error(error, description, _WHY) from None
    return owning_link(program, event, description, cookie=cookie)
