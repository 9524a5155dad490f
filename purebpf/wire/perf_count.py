"""Counting records by type in bytes that go by, without looking into them."""

from __future__ import annotations

from collections import Counter

from purebpf.errors import FormatError
from purebpf.wire.perf_ring import HEADER, Buffer

__all__ = ["RecordCounter"]


class RecordCounter:
    """Counts the records of one ring.

    Attributes:
        types: how many there were so far, by enum perf_event_type.
    """

    def __init__(self) -> None:
        self.types: Counter[int] = Counter()
        self._skip = 0  # bytes of a record that began in the last piece

    def add(self, piece: Buffer) -> None:
        """Count the records that begin in these bytes, which continue those of the last call.

        A ring is a multiple of 8 bytes, as records are, so no header is ever cut in two.

        Raises:
            FormatError: a record claims to be shorter than its header.
        """
        at, end = self._skip, len(piece)
        unpack, size_of_header = HEADER.unpack_from, HEADER.size
        found: list[int] = []
        append = found.append
        while at < end:
            type_, _, size = unpack(piece, at)
            if size < size_of_header:
                raise FormatError("perf ring", f"offset {at}", f"a record of {size} bytes")
            append(type_)
            at += size
        self._skip = at - end
        self.types.update(found)
