"""Framing of a user ring buffer, which user space fills and a program drains.

As in `wire.ring_buffer`, with the roles exchanged: records have the same 8-byte header and the
same padding (kernel/bpf/ringbuf.c, __bpf_user_ringbuf_peek). The kernel believes a record once
the producer position is behind it and its header is not BUSY: who writes data, header and
position in this order never needs BUSY, as long as stores are not reordered, as on x86.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from purebpf.wire.ring_buffer import stride

__all__ = ["frame_records"]

_HEADER = struct.Struct("=II")


def frame_records(records: Iterable[bytes], room: int) -> tuple[bytes, int]:
    """The first of `records`, as many as fit in `room` bytes of a ring, and how many these are."""
    parts: list[bytes] = []
    count = 0
    for record in records:
        length = len(record)
        room -= stride(length)
        if room < 0:
            break
        padding = bytes(-length & 7)
        parts += (_HEADER.pack(length, 0), record, padding)
        count += 1
    return b"".join(parts), count
