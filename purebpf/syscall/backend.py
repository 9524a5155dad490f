"""The backend of bpf(2) and perf_event_open(2), which tests can swap.

A backend returns the result of the system call, or the negated error number: no exceptions, no
policy. `replaced(backend)` puts another one in its place:

    with replaced(FakeBackend(fail_at=3)):
        ...
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from purebpf.abi.bpf import bpf_cmd
from purebpf.syscall.descriptor import Fresh

__all__ = ["Attr", "Backend", "KernelBackend", "current", "replaced"]

_GENERIC = (280, 241)
"""Numbers of bpf and perf_event_open in include/uapi/asm-generic/unistd.h (arm64, riscv, ...)."""

_NUMBERS = {
    "x86_64": (321, 298),
    "i386": (357, 336),
    "i686": (357, 336),
    "armv7l": (386, 364),
    "ppc64": (361, 319),
    "ppc64le": (361, 319),
    "s390x": (351, 331),
}


_OPENING = sum(
    1 << command
    for command in (
        bpf_cmd.BPF_MAP_CREATE,
        bpf_cmd.BPF_PROG_LOAD,
        bpf_cmd.BPF_OBJ_GET,
        bpf_cmd.BPF_PROG_GET_FD_BY_ID,
        bpf_cmd.BPF_MAP_GET_FD_BY_ID,
        bpf_cmd.BPF_RAW_TRACEPOINT_OPEN,
        bpf_cmd.BPF_BTF_LOAD,
        bpf_cmd.BPF_BTF_GET_FD_BY_ID,
        bpf_cmd.BPF_LINK_CREATE,
        bpf_cmd.BPF_LINK_GET_FD_BY_ID,
        bpf_cmd.BPF_ENABLE_STATS,
        bpf_cmd.BPF_ITER_CREATE,
        bpf_cmd.BPF_TOKEN_CREATE,
    )
)
"""The commands that return a descriptor, a bit each."""


Attr = ctypes.Array[ctypes.c_char]
"""The bytes of a union bpf_attr: `Buffer.array`."""


class Backend(Protocol):
    """The layer between purebpf and the kernel."""

    def bpf(self, command: int, attr: Attr, size: int) -> int:
        """Issue a BPF command; the kernel may write to the `size` bytes of `attr`."""

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        """Open a perf event; `attr` is the address of a struct perf_event_attr."""


class KernelBackend:
    """The real one: libc's syscall(2). The GIL is released during a call."""

    def __init__(self) -> None:
        self._bpf_number, self._perf_number = _NUMBERS.get(os.uname().machine, _GENERIC)
        # Without argtypes ctypes passes an array's address and a small int as they are, which is
        # a quarter faster for a map lookup than converting each argument to a c_long.
        libc = ctypes.CDLL(None, use_errno=True)
        self._syscall = libc["syscall"]
        self._syscall.restype = ctypes.c_long
        self._opening = libc["syscall"]
        self._opening.restype = Fresh

    def bpf(self, command: int, attr: Attr, size: int) -> int:
        """See `Backend`."""
        opens = command >= 0 and _OPENING >> command & 1
        call = self._opening if opens else self._syscall
        result: int = call(self._bpf_number, command, attr, size)
        return result if result >= 0 else -ctypes.get_errno()

    def prepared(self, command: int, attr: Attr, size: int) -> Callable[[], int]:
        """`bpf` with these arguments, to be called often: -1, and not the error, when it fails."""
        return partial(self._syscall, self._bpf_number, command, attr, size)

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        """See `Backend`."""
        numbers = (self._perf_number, attr, pid, cpu, group, flags)
        result: int = self._opening(*map(ctypes.c_long, numbers))
        return result if result >= 0 else -ctypes.get_errno()


current: Backend = KernelBackend()
"""The current one. `backend.current.bpf(...)`: its name is looked up at each call."""


@contextmanager
def replaced(other: Backend) -> Iterator[Backend]:
    """Use another backend inside the `with` block, in every thread."""
    global current  # noqa: PLW0603 - the one swappable object of the package
    before, current = current, other
    try:
        yield other
    finally:
        current = before
