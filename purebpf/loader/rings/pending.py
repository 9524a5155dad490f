"""Records consumed from a ring but not yet yielded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from purebpf.loader.rings.record_types import Decoder
from purebpf.wire.uniform_records import UniformRecords

__all__ = ["PendingRecords"]


class PendingRecords:
    """A batch of records: a run is decoded at once, where its type allows it, others one by one.

    Attributes:
        values: the remaining values; another iterator after `decode_as` and `raw`, where this one
            then has nothing left for the loops that still hold it.
    """

    def __init__(self, records: UniformRecords | Iterator[bytes], decoder: Decoder) -> None:
        self._decoder = decoder
        self._run: UniformRecords | None = None
        self._records: Iterator[bytes] = iter(())
        self.values: Iterator[Any] = iter(())
        self._take(records)

    def _take(self, records: UniformRecords | Iterator[bytes]) -> None:
        if isinstance(records, UniformRecords):
            values = self._decoder.run(records)
            if values is not None:
                self._run, self.values = records, values
                return
            records = records.records()
        self._run, self._records = None, records
        self.values = map(self._one, records)

    def _one(self, record: bytes) -> Any:
        return self._decoder.one(record)

    def _rest(self, run: UniformRecords) -> UniformRecords:
        return run.last(sum(1 for _ in self.values))

    def decode_as(self, decoder: Decoder) -> None:
        """Decode the remaining records by another type."""
        self._decoder = decoder
        if self._run is not None:
            self._take(self._rest(self._run))

    def raw(self) -> Iterator[bytes]:
        """Return the remaining records as bytes, shared with `values`: each record goes to the
        first caller.
        """
        if self._run is not None:
            self._take(self._rest(self._run).records())
        return self._records
