"""Attach to many functions by trampolines: `fentry.multi`, `fexit.multi`, `fsession.multi`.

One link for all of them (Linux 7.2 has it). Of the functions that match, it takes those with a
arguments and results fit into registers, as by libbpf, and that ftrace lists, where tracefs can be
read.
"""

from __future__ import annotations

import errno
import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from purebpf.btf.types.kinds import Func, FuncProto, Kind, Struct, Union
from purebpf.btf.types.parse import Btf
from purebpf.errors import AttachError, FormatError, KernelError, NotSupportedError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.options import Functions, each_cookie, pack_cookies, target_of
from purebpf.loader.attach.kprobe_multi import regex, traceable
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.loader.types.btf_modules import Modules
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.syscall import bpf

__all__ = ["attach"]

_MOST_ARGUMENTS = 12  # MAX_BPF_FUNC_ARGS
_LARGEST_ARGUMENT = 16
_WHY = {
    errno.EINVAL: (
        "this kernel does not support this kind (Linux 7.2 does), or cannot trace one of the "
        "functions"
    ),
    errno.EOPNOTSUPP: "this kernel does not support shared trampolines",
    errno.EBUSY: "another kernel tracer uses one of the functions",
}


def attach(program: Program, target: Functions | None = None, *, cookie: int = 0) -> Link:
    """Run `program` at the entry or the end of every matching function of the kernel, or at both.

    Args:
        program: an `fentry.multi`, `fexit.multi` or `fsession.multi` program.
        target: a pattern with `*` and `?`, `"vfs_*"`; or several, and names, each of which must be
            traceable, `{"vfs_read": 1, "vfs_w*": 2}` with their cookies; the last match counts. By
            default, the target in the program's section. A program for a module,
            `"nf_conntrack:nf_ct_*"`, was loaded for it: its section must say so.
        cookie: the value of bpf_get_attach_cookie() for targets without their own.

    Raises:
        TypeError: no target, and none in the section name; cookies, and one for all.
        ValueError: no names; a cookie of more than 64 bits; the program is closed.
        AttachError: ENOENT, no function matches, or one of the names is none that can be traced;
            EINVAL, a kernel that does not know the kind.
        NotSupportedError: the kernel has no BTF, or the module is not loaded.
    """
    where = target_of(program, target, "target required: kernel functions")
    description = f"program {program.name!r} on kernel functions {where}"
    wanted = dict(_ids(each_cookie(where, cookie, description), description))
    ids = array("I", sorted(wanted))
    try:
        link = bpf.link_create(
            program.attach_type,
            prog_fd=program.fileno(),
            tracing_multi_ids=ids.tobytes(),
            tracing_multi_cookies=pack_cookies(wanted[type_id] for type_id in ids),
            tracing_multi_cnt=len(ids),
        )
    except KernelError as error:
        raise attach_error(error, description, _WHY) from None
    return Link(f"{description} ({len(ids)} functions)", link=link)


def _ids(wanted: Mapping[str, int], description: str) -> Iterator[tuple[int, int]]:
    """Return the id of each selected function, all in the BTF of vmlinux or of one module, and its
    cookie.
    """
    try:
        traceable_names = traceable()
    except (KernelError, NotSupportedError):
        traceable_names = None
    with ExitStack() as stack:
        modules: Modules | None = None
        for wanted_name, cookie in wanted.items():
            module, _, pattern = wanted_name.rpartition(":")
            if module and modules is None:
                modules = stack.enter_context(Modules())
            types = _types_of(module, modules) if modules and module else kernel_btf()
            type_ids = _matching(types, pattern, traceable_names)
            if not type_ids:
                why = f"no traceable kernel function matches {wanted_name!r}"
                raise AttachError("bpf(BPF_LINK_CREATE)", errno.ENOENT, description, why=why)
            yield from ((type_id, cookie) for type_id in type_ids)


def _types_of(module: str, modules: Modules) -> Btf:
    types = modules.types().get(module)
    if types is None:
        raise NotSupportedError(f"functions of module {module!r}", "the module is not loaded")
    return types


def _matching(btf: Btf, pattern: str, traceable_names: set[str] | None) -> list[int]:
    """The functions that match, by id; of a module's BTF, the module's own."""
    first = len(kernel_btf()) if btf.base is not None else 1
    if set(pattern) & set("*?"):
        fits = re.compile(regex(pattern).decode()).fullmatch
        functions = (
            type_id for type_id in range(first, len(btf)) if btf.kind(type_id) is Kind.FUNC
        )
        candidates = [type_id for type_id in functions if fits(btf.name(type_id))]
    else:
        candidates = [type_id for type_id in btf.find(pattern, Kind.FUNC) if type_id >= first]
    return [
        type_id
        for type_id in candidates
        if (traceable_names is None or btf.name(type_id) in traceable_names)
        and _in_registers(btf, type_id)
    ]


def _in_registers(btf: Btf, type_id: int) -> bool:
    """Return True if a trampoline can pass the arguments on, and the result."""
    function = btf.type(type_id)
    assert isinstance(function, Func)
    prototype = btf.type(function.type_id)
    if not isinstance(prototype, FuncProto) or len(prototype.params) > _MOST_ARGUMENTS:
        return False
    if prototype.return_type:
        result = btf.type(btf.resolve(prototype.return_type))
        if isinstance(result, Struct | Union):
            return False
    try:
        sizes = [
            btf.sizeof(parameter.type_id) for parameter in prototype.params if parameter.type_id
        ]
    except FormatError:
        return False
    return len(sizes) == len(prototype.params) and max(sizes, default=0) <= _LARGEST_ARGUMENT
