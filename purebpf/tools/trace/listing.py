"""The names that `trace -e` takes: system calls and tracepoints."""

from __future__ import annotations

import os
from collections.abc import Iterator

from purebpf.abi import syscalls
from purebpf.cli.listing import fitting
from purebpf.syscall import tracefs
from purebpf.tools.trace.selection import select

__all__ = ["list_calls"]


def list_calls(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the calls and tracepoints that fit; `%net` and the like are groups of calls.

    Raises:
        KernelError, NotSupportedError: tracepoints cannot be read, and the pattern asks for one.
        UnknownCallError: there is no such group.
    """
    abis = syscalls.machine(os.uname().machine).abis
    names = {name for abi in abis for name in syscalls.table(abi).values()}
    if pattern.startswith("%"):
        yield from ((name, "system call") for name in sorted(select([pattern], names)))
        return
    if ":" not in pattern:
        yield from fitting(((name, "system call") for name in sorted(names)), pattern)
    yield from fitting(((name, "tracepoint") for name in tracefs.tracepoint_names()), pattern)
