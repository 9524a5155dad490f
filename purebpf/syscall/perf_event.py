"""perf_event_open(2) and the ioctls of its descriptors: one plain function each, no policy.

Every function raises `KernelError` with the call's name and errno. Numbers are from
include/uapi/linux/perf_event.h in the generic ioctl encoding (x86, arm64, riscv, s390).
"""

from __future__ import annotations

import fcntl
import os
import struct

from purebpf.errors import KernelError
from purebpf.syscall import backend
from purebpf.syscall.command import address_of
from purebpf.syscall.descriptor import Descriptor

__all__ = [
    "FLAG_FD_CLOEXEC",
    "FLAG_PID_CGROUP",
    "disable",
    "enable",
    "event_id",
    "perf_event_open",
    "read",
    "refresh",
    "reset",
    "set_bpf",
    "set_filter",
    "set_output",
    "set_period",
]

FLAG_PID_CGROUP = 1 << 2
FLAG_FD_CLOEXEC = 1 << 3

_ENABLE = 0x2400
_DISABLE = 0x2401
_REFRESH = 0x2402
_RESET = 0x2403
_PERIOD = 0x40082404
_SET_OUTPUT = 0x2405
_SET_FILTER = 0x40082406
_ID = 0x80082407
_SET_BPF = 0x40042408

_INT_END = 1 << 31
_GROUP = 1
"""PERF_IOC_FLAG_GROUP: the whole group of the event."""


def perf_event_open(
    attr: bytes | bytearray, pid: int, cpu: int, group_fd: int = -1, flags: int = FLAG_FD_CLOEXEC
) -> Descriptor:
    """Open an event: `attr` is a struct perf_event_attr with its `size` field set.

    With FLAG_PID_CGROUP, `pid` is a descriptor of a directory of the cgroup file system.

    Raises:
        ValueError: a number of more than 32 bits; the kernel would take the lower ones.
    """
    for name, value in (("pid", pid), ("cpu", cpu)):
        if not -_INT_END <= value < _INT_END:
            raise ValueError(f"{name} {value} does not fit in 4 bytes")
    result = backend.current.perf_event_open(address_of(attr), pid, cpu, group_fd, flags)
    if result < 0:
        raise KernelError("perf_event_open", -result)
    return Descriptor(result)


def enable(fd: int, *, group: bool = False) -> None:
    """PERF_EVENT_IOC_ENABLE."""
    _ioctl("PERF_EVENT_IOC_ENABLE", fd, _ENABLE, _GROUP if group else 0)


def disable(fd: int, *, group: bool = False) -> None:
    """PERF_EVENT_IOC_DISABLE."""
    _ioctl("PERF_EVENT_IOC_DISABLE", fd, _DISABLE, _GROUP if group else 0)


def reset(fd: int, *, group: bool = False) -> None:
    """PERF_EVENT_IOC_RESET: the count becomes 0; the times go on."""
    _ioctl("PERF_EVENT_IOC_RESET", fd, _RESET, _GROUP if group else 0)


def refresh(fd: int, overflows: int) -> None:
    """PERF_EVENT_IOC_REFRESH: enable until `overflows` more samples come."""
    _ioctl("PERF_EVENT_IOC_REFRESH", fd, _REFRESH, overflows)


def set_period(fd: int, period: int) -> None:
    """PERF_EVENT_IOC_PERIOD: a new period, or frequency in Hz, in the mode of the event.

    Raises:
        ValueError: no number of 64 bits.
    """
    if not 0 <= period < 1 << 64:
        raise ValueError(f"a period must fit in 64 bits, not {period}")
    _ioctl("PERF_EVENT_IOC_PERIOD", fd, _PERIOD, bytearray(struct.pack("=Q", period)))


def set_output(fd: int, target_fd: int) -> None:
    """PERF_EVENT_IOC_SET_OUTPUT: write to the ring of `target_fd`; -1: to the event's own."""
    _ioctl("PERF_EVENT_IOC_SET_OUTPUT", fd, _SET_OUTPUT, target_fd)


def set_filter(fd: int, text: bytes) -> None:
    """PERF_EVENT_IOC_SET_FILTER: a tracepoint filter, or an address filter of a trace PMU."""
    _ioctl("PERF_EVENT_IOC_SET_FILTER", fd, _SET_FILTER, bytearray(text + b"\0"))


def event_id(fd: int) -> int:
    """PERF_EVENT_IOC_ID: the number that PERF_SAMPLE_ID records carry."""
    number = bytearray(8)
    _ioctl("PERF_EVENT_IOC_ID", fd, _ID, number)
    return int(struct.unpack("=Q", number)[0])


def set_bpf(fd: int, program_fd: int) -> None:
    """PERF_EVENT_IOC_SET_BPF: run a BPF program on overflow (Linux 4.9) or at the probe.

    Commit aa6a5f3cb2b2, "perf, bpf: add perf events core support for BPF_PROG_TYPE_PERF_EVENT
    programs".
    """
    _ioctl("PERF_EVENT_IOC_SET_BPF", fd, _SET_BPF, program_fd)


def read(fd: int, words: int) -> tuple[int, ...]:
    """Read up to `words` numbers of struct read_format."""
    try:
        data = os.read(fd, 8 * words)
    except OSError as error:
        raise KernelError("read(perf event)", error.errno or 0) from None
    return struct.unpack(f"={len(data) // 8}Q", data)


def _ioctl(name: str, fd: int, request: int, argument: int | bytearray) -> None:
    try:
        fcntl.ioctl(fd, request, argument)
    except OSError as error:
        raise KernelError(f"ioctl({name})", error.errno or 0) from None
