"""Doing without a capability for a while: capset(2) of this thread's effective set."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from purebpf.errors import errno_name

__all__ = ["without"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_BITS = {"net_admin": 12, "sys_admin": 21, "bpf": 39}
_HEADER = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread


def _call(name: str, data: ctypes.Array[ctypes.c_char]) -> None:
    result = _LIBC[name](_HEADER, data)
    assert result == 0, f"{name} says {errno_name(ctypes.get_errno())}"


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Inside, this thread lacks those capabilities, which it can take back."""
    before = ctypes.create_string_buffer(24)
    _call("capget", before)
    # Two halves of effective, permitted, inheritable.
    words = list(struct.unpack("=6I", before.raw))
    for name in names:
        half, bit = divmod(_BITS[name], 32)
        words[3 * half] &= ~(1 << bit)
    _call("capset", ctypes.create_string_buffer(struct.pack("=6I", *words), 24))
    try:
        yield
    finally:
        _call("capset", before)
