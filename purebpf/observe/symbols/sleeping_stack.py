"""The user stack of a sleeping thread; BPF walks only the current task's."""

from __future__ import annotations

import struct

from purebpf.syscall.process_memory import ProcessMemory

__all__ = ["stack_bytes", "user_stack"]

_CHUNK = 16384
_COPY = 65536
_FRAME = struct.Struct("=QQ")


def user_stack(
    memory: ProcessMemory, ip: int, sp: int, bp: int, max_depth: int, *, code_bits: int = 0
) -> tuple[int, ...]:
    """Its addresses, leaf first, by frame pointers as the kernel's perf_callchain_user() does.

    The thread must not run during the read: the caller checks that, before and after.

    Args:
        memory: of its process.
        ip: where it is.
        sp: its stack pointer.
        bp: its frame pointer.
        max_depth: where to stop.
        code_bits: the bits of a code address, below its signature; 0: addresses are not signed.
    """
    addresses = [ip]
    # most stacks are read at once, since they are not deep in bytes
    chunk = memory.read(sp, _CHUNK)
    while len(addresses) < max_depth and bp:
        at = bp - sp
        frame = chunk[at : at + _FRAME.size] if at >= 0 else b""
        if len(frame) < _FRAME.size:
            frame = memory.read(bp, _FRAME.size)
        if len(frame) < _FRAME.size:
            break
        following, address = _FRAME.unpack(frame)
        addresses.append(address & code_bits if code_bits else address)
        if following <= bp:
            break
        bp = following
    return tuple(addresses)


def stack_bytes(memory: ProcessMemory, sp: int) -> bytes:
    """Return the stack of a sleeping thread, up to 64 KiB; b"" if it cannot be read.

    Args:
        memory: of its process.
        sp: its stack pointer.
    """
    return memory.read(sp, _COPY)
