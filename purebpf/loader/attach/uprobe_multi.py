"""Attach to many functions of one file at once: `uprobe.multi`, `uprobe.session`.

Linux 6.6 (commit 89ae89f53d20), sessions 6.13 (commit d920179b3d48).
"""

from __future__ import annotations

import errno
import os
from array import array
from collections.abc import Mapping

from purebpf.errors import ENOTSUPP, AttachError, KernelError
from purebpf.files.regular_file import Identity, opened_same
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.options import (
    Functions,
    at_return,
    each_cookie,
    pack_cookies,
    target_of,
)
from purebpf.loader.attach._common.probe_place import ProbePlaces, find_places
from purebpf.loader.perf.probe_threads import ProbedThread
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf

__all__ = ["attach", "attach_at", "process_of"]

_RETURN = 1  # BPF_F_UPROBE_MULTI_RETURN
_EVERY = -1


def attach(
    program: Program,
    target: Functions | None = None,
    *,
    pid: int = _EVERY,
    returns: bool | None = None,
    cookie: int = 0,
) -> Link:
    """Run `program` when any of the matching functions of a file is entered, or returns.

    At a return the kernel replaces the return address on the stack. A C++ exception, a Rust panic,
    a cancelled thread that unwinds through it, or a Go stack that grows ends the program.

    Args:
        program: a `uprobe.multi`, `uretprobe.multi` or `uprobe.session` program.
        target: `"/bin/bash:read*"`, `"libc.so.6:*alloc"`: a file, as for `uprobe`, and a pattern
            with `*` and `?`; or several of one file, `{"libc.so.6:malloc": 1, "libc.so.6:free": 2}`
            with their cookies; the last match counts. By default, the target in the program's
            section.
        pid: only in this process, 0 for our own; -1 for every one.
        returns: at the return; by default as the section says. A session has both.
        cookie: the value of bpf_get_attach_cookie() for targets without their own.

    Raises:
        TypeError: no target, and none in the section name; cookies, and one for all.
        ValueError: a target that is none, or of several files; a cookie of more than 64 bits, a
            negative `pid`; the program is closed.
        AttachError: ENOENT, no such file or functions; EINVAL, not on this kernel.
        FormatError: the file is not an ELF file, and the target is not an offset.
    """
    where = target_of(program, target, "target required: 'file:pattern'")
    description = f"program {program.name!r} on {where}"
    file, cookies = _places(each_cookie(where, cookie, description), description, pid)
    return attach_at(program, file, cookies, description, pid=pid, returns=returns)


def attach_at(
    program: Program,
    places: ProbePlaces,
    cookies: Mapping[int, int],
    description: str,
    *,
    pid: int = _EVERY,
    returns: bool | None = None,
) -> Link:
    """As `attach`, at the places, each with its cookie by offset; `description` is for errors."""
    process = process_of(pid, description)
    offsets = array("Q", places.offsets)
    with opened_same(places.path, places.identity, description) as path:
        try:
            return Link(
                f"{description} ({len(offsets)} functions)",
                link=bpf.link_create(
                    program.attach_type,
                    prog_fd=program.fileno(),
                    uprobe_multi_path=os.fsencode(path) + b"\0",
                    uprobe_multi_offsets=offsets.tobytes(),
                    uprobe_multi_cookies=pack_cookies(cookies[offset] for offset in offsets),
                    uprobe_multi_cnt=len(offsets),
                    uprobe_multi_flags=_RETURN if at_return(program, returns) else 0,
                    uprobe_multi_pid=process,
                ),
            )
        except KernelError as error:
            reasons = {
                errno.EINVAL: "this kernel does not support multi-uprobes (Linux 6.6; "
                "sessions 6.13)",
                errno.ESRCH: f"no process has PID {pid}",
                ENOTSUPP: "one of the functions starts with an instruction that cannot be probed",
            }
            raise attach_error(error, description, reasons) from None


def _places(
    wanted: Mapping[str, int], description: str, pid: int
) -> tuple[ProbePlaces, dict[int, int]]:
    """The places in one file, and the cookie for each offset in it."""
    files: dict[str, set[Identity | None]] = {}
    cookies = {}
    for symbol_name, cookie in wanted.items():
        path, identity, offsets = find_places(symbol_name, description, pid)
        files.setdefault(path, set()).add(identity)
        cookies.update(dict.fromkeys(offsets, cookie))
    if len(files) > 1:
        raise ValueError(f"{description}: a link takes one file, not {', '.join(sorted(files))}")
    ((path, identities),) = files.items()
    identified = identities - {None}
    if len(identified) > 1:
        why = f"{path} changed while it was read"
        raise AttachError("uprobe", errno.ENOENT, description, why=why)
    return ProbePlaces(path, identified.pop() if identified else None, sorted(cookies)), cookies


def process_of(pid: int, description: str) -> int:
    """Return the number of a process as the kernel takes it, 0 for all; `pid` may be a thread's.

    Raises:
        AttachError: ESRCH, its first thread has ended.
    """
    if pid == _EVERY:
        return 0
    thread = ProbedThread(pid or os.getpid())
    if thread.tid != thread.pid:
        why = f"the first thread of PID {pid} has ended, by which the kernel finds its memory"
        fix = "attach to every process, and compare bpf_get_current_pid_tgid() in the program"
        raise AttachError("uprobe.multi", errno.ESRCH, description, why=why, fix=fix)
    return thread.pid
