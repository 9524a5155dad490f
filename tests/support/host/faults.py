"""Which errors each command may fail with, and a substitute that keeps account of what it makes.

The errors are those that bpf(2) and perf_event_open(2) list for the command, and those that the
pages leave out and kernel/bpf/syscall.c returns: no descriptor left (EMFILE, ENFILE), a kernel
without bpf(2) (ENOSYS), the signals that interrupt BPF_PROG_LOAD (EAGAIN) and
BPF_PROG_TEST_RUN (EINTR).
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.syscall import bpf
from purebpf.syscall.backend import Attr, KernelBackend, replaced
from tests.support import probes
from tests.support.host.backends import Call, Interposer

__all__ = ["Accountant", "Fault", "alive", "errors_of", "every_fault", "faults", "slow_host"]

_ANY = (errno.EPERM, errno.EINVAL, errno.ENOMEM, errno.EFAULT, errno.ENOSYS)
_NEW_FD = (errno.EMFILE, errno.ENFILE)
_FD = (errno.EBADF,)

_ERRORS: dict[str, tuple[int, ...]] = {
    "BPF_MAP_CREATE": (*_ANY, *_NEW_FD, errno.E2BIG, errno.ENOTSUP),
    "BPF_MAP_LOOKUP_ELEM": (*_ANY, *_FD, errno.ENOENT),
    "BPF_MAP_UPDATE_ELEM": (*_ANY, *_FD, errno.E2BIG, errno.EEXIST, errno.ENOENT, errno.EBUSY),
    "BPF_MAP_DELETE_ELEM": (*_ANY, *_FD, errno.ENOENT),
    "BPF_MAP_GET_NEXT_KEY": (*_ANY, *_FD, errno.ENOENT),
    # ENOENT is the answer for an empty map, and no error
    "BPF_MAP_LOOKUP_BATCH": (*_ANY, *_FD, errno.ENOSPC, errno.EINTR),
    "BPF_MAP_LOOKUP_AND_DELETE_BATCH": (*_ANY, *_FD, errno.ENOSPC, errno.EINTR),
    "BPF_MAP_UPDATE_BATCH": (*_ANY, *_FD, errno.E2BIG, errno.EEXIST, errno.EBUSY),
    "BPF_MAP_DELETE_BATCH": (*_ANY, *_FD, errno.ENOENT),
    "BPF_MAP_FREEZE": (*_ANY, *_FD, errno.EBUSY),
    "BPF_BTF_GET_FD_BY_ID": (*_ANY, *_NEW_FD, errno.ENOENT),
    "BPF_BTF_LOAD": (*_ANY, *_NEW_FD, errno.E2BIG, errno.ENOSPC),
    "BPF_PROG_LOAD": (
        *(*_ANY, *_NEW_FD, *_FD),
        *(errno.E2BIG, errno.EACCES, errno.EAGAIN, errno.ENOSPC),
    ),
    "BPF_PROG_BIND_MAP": (*_ANY, *_FD),
    "BPF_LINK_CREATE": (*_ANY, *_NEW_FD, *_FD, errno.EEXIST, errno.EBUSY, errno.E2BIG),
    "BPF_RAW_TRACEPOINT_OPEN": (*_ANY, *_NEW_FD, *_FD, errno.ENOENT, errno.EACCES),
    "BPF_ITER_CREATE": (*_ANY, *_NEW_FD, *_FD),
    "BPF_OBJ_GET": (*_ANY, *_NEW_FD, errno.ENOENT, errno.EACCES),
    "BPF_OBJ_PIN": (*_ANY, *_FD, errno.EEXIST, errno.ENOENT, errno.EACCES),
    "BPF_PROG_GET_NEXT_ID": (*_ANY, errno.ENOENT),
    "BPF_OBJ_GET_INFO_BY_FD": (*_ANY, *_FD, errno.E2BIG),
    "perf_event_open": (
        *(errno.E2BIG, errno.EACCES, errno.EBADF, errno.EBUSY, errno.EFAULT, errno.EINTR),
        *(errno.EINVAL, errno.EMFILE, errno.ENODEV, errno.ENOENT, errno.ENOSPC, errno.ENOSYS),
        *(errno.EOPNOTSUPP, errno.EOVERFLOW, errno.EPERM, errno.ESRCH, errno.ENOMEM),
    ),
}

_BATCH_COUNTED = (errno.ENOENT, errno.ENOSPC, errno.EINTR, errno.EEXIST, errno.EBUSY, errno.E2BIG)
"""With these, the kernel has written to the attr's `count` how many elements were done."""

_MADE = {
    "BPF_MAP_CREATE": "map",
    "BPF_PROG_LOAD": "program",
    "BPF_LINK_CREATE": "link",
    "BPF_RAW_TRACEPOINT_OPEN": "link",
}


def errors_of(command: str) -> tuple[int, ...]:
    """The errors that `command` may fail with. KeyError: a command that is not in the table yet."""
    return _ERRORS[command]


def slow_host() -> bool:
    """Whether this is an emulated machine, where each error of each call would take hours."""
    return os.environ.get("PUREBPF_SLOW_HOST") == "1"


class Fault(NamedTuple):
    """The call of that number, from 1, is refused with `error`."""

    number: int
    command: str
    error: int

    def __str__(self) -> str:
        return f"call {self.number}, {self.command}: {errno.errorcode[self.error]}"


def every_fault() -> bool:
    """Whether every error of every call is wanted: PUREBPF_FAULTS=every, which takes minutes."""
    return os.environ.get("PUREBPF_FAULTS") == "every"


def faults(commands: list[str], one_in: int = 1) -> Iterator[Fault]:
    """Every call fails once, and with every error where its command is called for the first time.

    Every error of every call: see `every_fault`. On a slow host: one error for each call. With
    `one_in`, one of so many errors of a first call, and of so many later calls.
    """
    if every_fault():
        one_in = 1
    met: set[str] = set()
    for number, command in enumerate(commands, 1):
        if command in met and number % one_in:
            continue
        errors = errors_of(command)[::one_in]
        if slow_host() or (command in met and not every_fault()):
            errors = (errors[number % len(errors)],)
        met.add(command)
        for error in errors:
            yield Fault(number, command, error)


class Accountant(Interposer):
    """A substitute that may refuse one call, and knows the ids of all that passed through it.

    Attributes:
        made: kind and id of every map, program and link.
    """

    def __init__(self, fault: Fault | None = None) -> None:
        def decide(call: Call) -> int | None:
            return fault.error if fault and call.number == fault.number else None

        super().__init__(decide)
        self._fault = fault
        self.made: set[tuple[str, int]] = set()

    def bpf(self, command: int, attr: Attr, size: int) -> int:
        result = super().bpf(command, attr, size)
        name = bpf_cmd(command).name
        refused = self._fault is not None and self._fault.number == len(self.calls)
        if refused and name.endswith("_BATCH") and -result in _BATCH_COUNTED:
            count = ATTR["batch"].fields["count"][0]
            ctypes.memset(ctypes.addressof(attr) + count, 0, 4)
        if result >= 0 and name in _MADE:
            info = bytearray(256)
            with replaced(KernelBackend()):
                known = bpf.obj_get_info_by_fd(result, info)
            # bpf_map_info and bpf_prog_info begin with type and id, bpf_link_info too
            assert known >= 8
            self.made.add((_MADE[name], int.from_bytes(info[4:8], "little")))
        return result


def alive(made: set[tuple[str, int]], patience_s: float = 30) -> list[str]:
    """Those of `made` that the kernel still has after a while.

    It is asked for lists of ids. Opening a map by its id would be wrong here: when the work that
    empties a program array is still queued, closing it once more takes a reference for ever
    (prog_array_map_clear in kernel/bpf/arraymap.c), and the test would make the leak it looks for.
    """
    deadline = time.monotonic() + patience_s
    while True:
        now = probes.kernel_objects()
        left = [f"{kind} {number}" for kind, number in sorted(made) if number in now[kind]]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.01)
