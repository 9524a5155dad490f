"""Put a program in the place of a function of another program (Linux 5.6, commit be8704ff07d2).

The verifier checks at load that both functions take and return the same: see `load(targets=...)`.
"""

from __future__ import annotations

import errno

from purebpf.errors import AttachError, KernelError
from purebpf.loader.programs.attach_target import function_of
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf

__all__ = ["attach"]

_WHY = {
    errno.EBUSY: "the function is already replaced, or its program is in a PROG_ARRAY",
    errno.EINVAL: "the signature of the function differs from that of the target at load time",
}


def attach(
    program: Program, target: Program | None = None, *, function: str = "", cookie: int = 0
) -> Link:
    """Let `program` run whenever a function of another program is called.

    Args:
        program: a `freplace` program.
        target: the program that has the function; without it, the one it was loaded for, which
            the kernel accepts once. Another one's function must have the same signature (Linux
            5.10).
        function: its name in `target`; by default the name in the program's section.
        cookie: the value of bpf_get_attach_cookie() (Linux 5.19).

    Raises:
        TypeError: a function, and no target.
        ValueError: a program is closed.
        NotSupportedError: `target` has no such function.
        AttachError: EBUSY, the function is replaced already; EINVAL, another signature.
    """
    if target is None and function:
        raise TypeError("target required with function=: the program that has the function")
    name = function or program.target
    where = f"{name}() of program {target.name!r}" if target is not None else f"{name}()"
    description = f"program {program.name!r} in the place of {where}"
    fields = {"tracing_cookie": cookie}
    if target is not None:
        fields |= {
            "target_fd": target.fileno(),
            "target_btf_id": function_of(target, name, description),
        }
    try:
        return Link(description, link=bpf.link_create(0, prog_fd=program.fileno(), **fields))
    except KernelError as error:
        number = error.errno or 0
        why = _WHY.get(number, "")
        # ENOENT: Linux 5.10 (commit 4a1e7c0c63e0, "bpf: Support attaching freplace programs to
        # multiple attach points").
        if number in (errno.EINVAL, errno.ENOENT) and target is None:
            why = "it was attached before, and the kernel no longer keeps its target"
            fix = "pass the target again: .attach(target)"
            raise AttachError(error.call, number, description, why=why, fix=fix) from None
        raise AttachError(error.call, number, description, why=why) from None
