"""Requests to block devices, one by one and added up. Pure."""

from __future__ import annotations

from purebpf.errors import errno_name
from purebpf.tuples import NamedTuple

__all__ = ["IoRow", "Request", "error_name", "file_name", "op_name"]

_OPS = {
    0: "read",
    1: "write",
    2: "flush",
    3: "discard",
    5: "erase",
    9: "zeroes",
    34: "driver",
    35: "driver",
}
"""enum req_op of include/linux/blk_types.h; the numbers that every kernel since 5.10 agrees on."""

_STATUS = (
    *("", "NOTSUPP", "TIMEOUT", "NOSPC", "TRANSPORT", "TARGET", "RESV_CONFLICT", "MEDIUM"),
    *("PROTECTION", "RESOURCE", "IOERR"),
)
"""BLK_STS_* of the same file."""


class Request(NamedTuple):
    """A request that was completed.

    Attributes:
        time_ns: of its end, since 1970.
        pid, tid, uid, comm, cgroup: the task that made it: for writeback, one of the kernel's.
        disk: the device's name, without a partition.
        op: read, write, flush, discard, ...
        sector: where, in units of 512 bytes from the start of the disk.
        took_ns: from its creation; `queued_ns` of them until the driver got it.
        error: a name of BLK_STS_* or of an errno; "": none.
        inode: of the file that the first page belongs to; 0: none, as with O_DIRECT.
        file: its name and folder, as far as the kernel has them at hand; "": not known.
    """

    time_ns: int
    pid: int
    tid: int
    uid: int
    comm: str
    cgroup: int
    disk: str
    op: str
    sector: int
    bytes: int
    took_ns: int
    queued_ns: int
    error: str
    inode: int
    file: str


class IoRow(NamedTuple):
    """Requests of one device, process or file and of one kind, added up.

    `buckets` are of microseconds since the creation of each request: see
    `purebpf.results.shape.histogram`. Sums are in nanoseconds.
    """

    disk: str
    pid: int
    comm: str
    file: str
    op: str
    requests: int
    errors: int
    bytes: int
    total_ns: int
    queued_ns: int
    buckets: tuple[int, ...]


def op_name(number: int) -> str:
    """The name of a kind of request."""
    return _OPS.get(number, f"op {number}")


def error_name(status: int) -> str:
    """The name of an error: a blk_status_t, or a negative errno of kernels before 5.16."""
    if status < 0:
        return errno_name(-status)
    return _STATUS[status] if status < len(_STATUS) else f"status {status}"


def file_name(file: str, folder: str, inode: int, device: int) -> str:
    """Return the folder and name of a file, or a substitute where it has none."""
    if file:
        return f"{folder.rstrip('/')}/{file}" if folder else file
    if not inode:
        return ""
    return f"inode {inode}" if device else "[metadata]"
