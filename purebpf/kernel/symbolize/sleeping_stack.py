"""The user stack of a sleeping thread, by frame pointers; BPF walks only the current task's."""

from __future__ import annotations

import os
import struct

from purebpf.errors import KernelError
from purebpf.syscall import proc

__all__ = ["stack_bytes", "user_stack"]

_CHUNK = 16384
_COPY = 65536
_FRAME = struct.Struct("=QQ")


def user_stack(pid: int, ip: int, sp: int, bp: int, max_depth: int) -> tuple[int, ...]:
    """Its addresses, leaf first, by frame pointers as the kernel's perf_callchain_user() does.

    The thread must not run during the read: the caller checks that, before and after.

    Args:
        pid: its process.
        ip: where it is.
        sp: its stack pointer.
        bp: its frame pointer.
        max_depth: where to stop.
    """
    addresses = [ip]
    try:
        memory = proc.open_memory(pid)
    except KernelError:  # it has ended, or is not ours to read
        return tuple(addresses)
    if memory is None:
        return tuple(addresses)
    try:
        # most stacks are read at once, since they are not deep in bytes
        chunk = _read(memory, sp, _CHUNK)
        while len(addresses) < max_depth and bp:
            at = bp - sp
            frame = chunk[at : at + _FRAME.size] if at >= 0 else b""
            if len(frame) < _FRAME.size:
                frame = _read(memory, bp, _FRAME.size)
            if len(frame) < _FRAME.size:
                break
            following, address = _FRAME.unpack(frame)
            addresses.append(address)
            if following <= bp:
                break
            bp = following
    finally:
        os.close(memory)
    return tuple(addresses)


def stack_bytes(pid: int, sp: int) -> bytes:
    """What is on the stack of a sleeping thread, up to 64 KiB; b"" if that cannot be read.

    Args:
        pid: its process.
        sp: its stack pointer.
    """
    try:
        memory = proc.open_memory(pid)
    except KernelError:  # it has ended, or is not ours to read
        return b""
    if memory is None:
        return b""
    try:
        return _read(memory, sp, _COPY)
    finally:
        os.close(memory)


def _read(memory: int, address: int, size: int) -> bytes:
    """What is mapped there, up to `size` bytes."""
    try:
        return os.pread(memory, size, address)
    except (OSError, OverflowError):  # nothing is
        return b""
