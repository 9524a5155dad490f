"""Framing of a perf event ring: which bytes are unread, and where each record starts and ends.

The ring is `size` bytes, a power of two. `head` and `tail` are free-running byte counts; records
are multiples of 8 bytes and may wrap (perf_event_open(2), "MMAP layout"). `perf_records` knows the
meaning of a record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from purebpf.errors import FormatError
from purebpf.wire.formats import PERF_EVENT_HEADER

if TYPE_CHECKING:
    from purebpf.wire.uniform_records import UniformRecords

Buffer = bytes | bytearray | memoryview

Skip = Callable[[FormatError], object]
"""Told why a record cannot be read, by a reader that goes on behind it."""

HEADER = struct.Struct("=" + PERF_EVENT_HEADER)
"""struct perf_event_header: type, misc, size (header included)."""

_U32 = struct.Struct("=I")
_RAW = struct.Struct("=" + PERF_EVENT_HEADER + "I")
"""The header and, for PERF_SAMPLE_RAW alone, the payload's length."""


def unread(ring: memoryview, tail: int, head: int) -> memoryview | bytes:
    """The bytes between `tail` and `head`, in one piece: a copy of those that wrap.

    Raises FormatError when the positions cannot belong to this ring.
    """
    size = len(ring)
    length = head - tail
    if not 0 <= length <= size:
        raise FormatError(
            "perf ring", f"head {head}, tail {tail}", f"{length} unread bytes in a ring of {size}"
        )
    start = tail & (size - 1)
    if start + length <= size:
        return ring[start : start + length]
    return b"".join((ring[start:], ring[: start + length - size]))


def frames(
    data: Buffer, offset: int = 0, skip: Skip | None = None
) -> Iterator[tuple[int, int, int, int]]:
    """(type, misc, start of the body, end) of each record of `data`, from `offset` on.

    A record is wrong when it is shorter than its header, not a multiple of 8 bytes, or runs past
    the end: the rest of `data` cannot be read then.

    Args:
        data: begins at a record.
        offset: where the first record begins.
        skip: called with a wrong record, which ends the iteration. None: it raises FormatError.
    """
    unpack = HEADER.unpack_from
    end = len(data)
    problem = ""
    while offset + 8 <= end:
        kind, misc, size = unpack(data, offset)
        following = offset + size
        if size < 8 or size & 7 or following > end:
            problem = f"record type {kind} claims {size} bytes, but {end - offset} are left"
            break
        yield kind, misc, offset + 8, following
        offset = following
    if offset != end:
        problem = problem or f"{end - offset} bytes are not a header"
        error = FormatError("perf ring", f"offset {offset}", problem)
        if skip is None:
            raise error
        skip(error)


def raw_payload(data: Buffer, start: int, end: int) -> tuple[int, int]:
    """(offset, length) of the payload of a sample with sample_type PERF_SAMPLE_RAW alone.

    The kernel pads the payload so that the record is a multiple of 8 bytes, and counts the
    padding: an 8-byte payload arrives as 12 bytes (perf_prepare_sample in kernel/events/core.c).
    """
    if end - start < 4:
        raise FormatError("perf ring", f"offset {start}", "raw sample without a size")
    (length,) = _U32.unpack_from(data, start)
    if start + 4 + length > end:
        raise FormatError(
            "perf ring", f"offset {start}", f"raw sample of {length} bytes in {end - start}"
        )
    return start + 4, length


def raw_run(data: bytes, kind: int) -> UniformRecords | None:
    """The payloads of `data`, if all of it is such samples, of one length: type `kind`."""
    if len(data) < _RAW.size:
        return None
    first, _, size, length = _RAW.unpack_from(data)
    if first != kind or size & 7 or len(data) % (size or 1) or _RAW.size + length > size:
        return None
    words, halves = memoryview(data).cast("I"), memoryview(data).cast("H")
    same = (
        words[:: size >> 2].tolist().count(kind),
        halves[3 :: size >> 1].tolist().count(size),
        words[2 :: size >> 2].tolist().count(length),
    )
    if same != (len(data) // size,) * 3:
        return None
    from purebpf.wire.uniform_records import UniformRecords

    return UniformRecords(data, _RAW.size, length, size)
