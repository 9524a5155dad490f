"""Attach to many functions of the kernel at once: `kprobe.multi` (Linux 5.18), sessions (6.10).

Commit 0dcac2725406; commit 535a3692ba72, "bpf: Add support for kprobe session attach".

Through fprobe, one link for all: thousands of functions in the time that a few kprobes take.
"""

from __future__ import annotations

import errno
import re
from array import array
from collections.abc import Iterable
from pathlib import Path

from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.options import (
    Functions,
    at_return,
    each_cookie,
    pack_cookies,
    target_of,
)
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf, proc, tracefs
from purebpf.syscall.buffer import Buffer

__all__ = ["attach", "matching", "regex", "traceable"]

_RETURN = 1  # BPF_F_KPROBE_MULTI_RETURN
_AVAILABLE = "available_filter_functions"
_WHY = {
    errno.EOPNOTSUPP: "this kernel does not have fprobe (CONFIG_FPROBE, Linux 5.18)",
    errno.EINVAL: "this kernel does not support kprobe.multi, or cannot trace one of the functions",
    errno.ESRCH: "the kernel cannot trace one of the functions",
}


def attach(
    program: Program,
    target: Functions | None = None,
    *,
    returns: bool | None = None,
    cookie: int = 0,
) -> Link:
    """Run `program` when any of the matching functions of the kernel is entered, or returns.

    Args:
        program: a `kprobe.multi`, `kretprobe.multi` or `kprobe.session` program.
        target: a pattern with `*` and `?`, `"vfs_*"`, which selects the traceable functions; or
            names, each of which must be traceable, `{"vfs_read": 1, "vfs_write": 2}` with their
            cookies. By default, the target in the program's section.
        returns: at the return; by default as the section says. A session has both.
        cookie: the value of bpf_get_attach_cookie() for targets without their own.

    Raises:
        TypeError: no target, and none in the section name; cookies, and one for all.
        ValueError: no names; a cookie of more than 64 bits; the program is closed.
        AttachError: ENOENT, no function matches; ESRCH, one of the names is none that can be
            traced; EOPNOTSUPP, a kernel without fprobe.
        NotSupportedError: a pattern, and no tracefs, or addresses that may not be seen.
    """
    where = target_of(program, target, "target required: kernel functions")
    description = f"program {program.name!r} on kernel functions {where}"
    wanted = each_cookie(where, cookie, description)
    memory: Buffer | None = None  # what pointers lead to, kept until the call is over
    if isinstance(where, str) and set(where) & set("*?"):
        places = matching(where)
        if not places:
            why = f"no traceable kernel function matches {where!r}"
            raise AttachError("bpf(BPF_LINK_CREATE)", errno.ENOENT, description, why=why)
        field, pointers = "kprobe_multi_addrs", array("Q", places)
        cookies = pack_cookies([cookie] * len(places))
    else:
        field = "kprobe_multi_syms"
        memory, pointers = _c_strings(wanted)
        cookies = pack_cookies(wanted.values())
    try:
        return Link(
            f"{description} ({len(pointers)} functions)",
            link=bpf.link_create(
                program.attach_type,
                prog_fd=program.fileno(),
                kprobe_multi_flags=_RETURN if at_return(program, returns) else 0,
                kprobe_multi_cnt=len(pointers),
                kprobe_multi_cookies=cookies,
                **{field: pointers.tobytes()},
            ),
        )
    except KernelError as error:
        raise attach_error(error, description, _WHY) from None
    finally:
        del memory


def _c_strings(names: Iterable[str]) -> tuple[Buffer, array[int]]:
    """The memory of C strings, and a pointer to each."""
    encoded = [name.encode() + b"\0" for name in names]
    memory = Buffer(b"".join(encoded))
    pointers, at = array("Q"), memory.address
    for symbol_name in encoded:
        pointers.append(at)
        at += len(symbol_name)
    return memory, pointers


def matching(pattern: str) -> list[int]:
    """The addresses of the functions that match a pattern and can be traced, each once.

    Raises:
        NotSupportedError: no tracefs, or the kernel shows no addresses.
        KernelError: EACCES, tracefs or kallsyms may not be read.
    """
    traceable_names = traceable()
    line = re.compile(rb"^([0-9a-f]+) [tTwW] (%b)(?:\t.*)?$" % regex(pattern), re.MULTILINE)
    known_symbols = [(int(m[1], 16), m[2].decode()) for m in line.finditer(proc.kallsyms())]
    places = sorted({address for address, name in known_symbols if name in traceable_names})
    if places and not places[-1]:
        reason = (
            f"{proc.KALLSYMS} shows zeros: kernel.kptr_restrict hides addresses from a process "
            "without CAP_SYSLOG"
        )
        raise NotSupportedError(f"kernel functions {pattern}", reason)
    return places


def traceable() -> set[str]:
    """Return the functions that ftrace lists, modules included.

    Raises:
        NotSupportedError: no tracefs.
        KernelError: EACCES, it may not be read.
    """
    return set().union(*traceable_by_module().values())


def traceable_by_module(path: str = "") -> dict[str, set[str]]:
    """Return the functions that ftrace lists by module, "vmlinux" for the kernel itself.

    Args:
        path: another file with such a list.

    Raises:
        OSError: this file cannot be read.
        NotSupportedError: no tracefs.
        KernelError: EACCES, it may not be read.
    """
    modules: dict[str, set[str]] = {"vmlinux": set()}
    text = Path(path).read_text(encoding="utf-8") if path else tracefs.read(_AVAILABLE)
    for line in text.splitlines():
        name, _, module = line.partition(" ")
        modules.setdefault(module.strip("[]") or "vmlinux", set()).add(name)
    return modules


def regex(pattern: str) -> bytes:
    """A pattern as a regular expression over one name."""
    wild = {"*": r"\S*", "?": r"\S"}
    return "".join(wild.get(char) or re.escape(char) for char in pattern).encode()
