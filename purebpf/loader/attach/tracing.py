"""Attach programs that were loaded for one place: `tp_btf`, `fentry`, `fexit`, `fsession`,
`fmod_ret`, `lsm`.

The place was chosen at load, when the verifier checked the program against it. Linux 5.5
(tracepoints: commit f1b9509c2fb0; fentry and fexit: commit fec56f5890d9), 5.7 (fmod_ret:
commit ae24082331d9; LSM: commit fc611f47f218).
"""

from __future__ import annotations

import errno

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import ENOTSUPP, KernelError, NotSupportedError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf

__all__ = ["attach"]

_PLACES: dict[int, str] = {
    bpf_attach_type.BPF_TRACE_RAW_TP: "BTF tracepoint",
    bpf_attach_type.BPF_TRACE_FENTRY: "entry to",
    bpf_attach_type.BPF_TRACE_FEXIT: "return of",
    bpf_attach_type.BPF_TRACE_FSESSION: "entry to and return of",
    bpf_attach_type.BPF_MODIFY_RETURN: "the return value of",
    bpf_attach_type.BPF_LSM_MAC: "LSM hook",
}
_WHY: dict[int, str] = {
    errno.EBUSY: "the program is already attached there, another kernel tracer uses the "
    "function, or another program replaces it",
    errno.E2BIG: "the function already has 38 programs, the kernel's maximum",
    errno.ENOENT: "this kernel does not have this tracepoint; the name is without the category",
    errno.EINVAL: "the kernel can no longer patch the function, or allows no such programs on it",
    ENOTSUPP: "this kernel does not have BPF trampolines here (CONFIG_DYNAMIC_FTRACE, the JIT)",
}


def attach(program: Program, target: None = None, *, cookie: int = 0) -> Link:
    """Run `program` whenever its tracepoint, function or hook is passed.

    It was loaded for one place: there is no other `target`. `cookie` is the value of
    bpf_get_attach_cookie() (Linux 5.19, commit 2fcc82411e74; for tracepoints 6.10, commit
    68ca5d4eebb8).

    Raises:
        TypeError: a target.
        ValueError: the program is closed.
        AttachError: the kernel refused.
        NotSupportedError: a cookie, and a kernel that has none.
    """
    if target is not None:
        raise TypeError(
            f"program {program.name!r} takes no target: its target was fixed at load time"
        )
    attach_point = f"{_PLACES.get(program.attach_type, '')} {program.target}".strip()
    description = f"program {program.name!r} on {attach_point or 'its target'}"
    try:
        if not cookie:
            return Link(description, link=bpf.raw_tracepoint_open(program.fileno()))
        return Link(
            description,
            link=bpf.link_create(
                program.attach_type, prog_fd=program.fileno(), tracing_cookie=cookie
            ),
        )
    except KernelError as error:
        if cookie and error.errno in (errno.EINVAL, errno.E2BIG):
            feature = f"a cookie for {program.name!r}"
            since = "needs Linux 5.19 for functions, 6.10 for tracepoints"
            raise NotSupportedError(feature, f"{error}; {since}") from None
        raise attach_error(error, description, _WHY) from None
