"""The device and the file system of a file (statx(2), statfs(2))."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache

__all__ = ["device_of", "file_system_of"]

_EMPTY_PATH, _DONT_SYNC = 0x1000, 0x4000
_SIZE = 256
_DEVICE = struct.Struct("=II")
_DEVICE_AT = 136
"""stx_dev_major and stx_dev_minor in struct statx, include/uapi/linux/stat.h."""


def device_of(fd: int) -> tuple[int, int] | None:
    """The major and minor number; None where libc has no statx (before glibc 2.28).

    fstat(2) may ask the server of a FUSE, which need not answer; this call asks for no field, and
    not to synchronise: Linux 4.11, commit a528d35e8bfc ("statx: Add a system call ...").

    Raises:
        OSError: EBADF.
    """
    statx = _statx()
    if statx is None:
        return None
    data = ctypes.create_string_buffer(_SIZE)
    if statx(fd, b"", _EMPTY_PATH | _DONT_SYNC, 0, data):
        raise OSError(ctypes.get_errno(), "statx(2)")
    major, minor = _DEVICE.unpack_from(data, _DEVICE_AT)
    return major, minor


def file_system_of(fd: int) -> int:
    """The number of a file system's type, see include/uapi/linux/magic.h; 0 if it is not known."""
    # f_type is a long, of which this is the lower half (little-endian), or an int (s390x)
    status = (ctypes.c_uint32 * 64)()
    failed = ctypes.CDLL(None, use_errno=True).fstatfs(fd, status)
    return 0 if failed else status[0]


@cache
def _statx() -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
