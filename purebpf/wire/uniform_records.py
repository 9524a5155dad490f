"""Records of one length at equal distances: most programs send these; they are decoded at once."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from operator import itemgetter

from purebpf.tuples import NamedTuple


class UniformRecords(NamedTuple):
    """Copied from a ring: of each `step` bytes, `length` behind the first `before` are a record."""

    data: bytes
    before: int
    length: int
    step: int

    def records(self) -> Iterator[bytes]:
        """Each record."""
        after = self.step - self.before - self.length
        layout = struct.Struct(f"{self.before}x{self.length}s{after}x")
        return map(itemgetter(0), layout.iter_unpack(self.data))

    def last(self, count: int) -> UniformRecords:
        """Return the positions without the records before the last `count`."""
        return self._replace(data=self.data[len(self.data) - count * self.step :])
