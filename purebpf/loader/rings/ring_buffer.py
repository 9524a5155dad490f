"""`RingBuffer`: the records of a BPF_MAP_TYPE_RINGBUF map (Linux 5.8, commit 457f44363a88)."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, overload

from purebpf.loader.rings.pending import PendingRecords
from purebpf.loader.rings.readers import Reader
from purebpf.loader.rings.record_types import (
    RecordCodec,
    RecordMap,
    RecordType,
    Short,
    record_type_id,
    too_short,
)
from purebpf.syscall.memory import Memory
from purebpf.typevars import T, V
from purebpf.wire.ring_buffer import HEADER_SIZE, alike, find_committed, stride
from purebpf.wire.uniform_records import UniformRecords

if TYPE_CHECKING:
    import builtins

__all__ = ["RingBuffer"]

_BATCH = 1024
"""Records that leave the ring at a time: few enough to give the program its space back soon."""


class RingBuffer(Reader[V]):
    """Reads the records that programs submit to a ring buffer map.

    One reader for a map: the read position belongs to the map, not to the reader. Positions and
    record headers are read and stored as single aligned words; x86 guarantees their order against
    the copy of the data (see `wire.ring_buffer`).

    The kernel does not count the records that found no room: a program must do that itself, and
    `lost` names the counter.
    """

    @overload
    def __init__(
        self: RingBuffer[T],
        source: RecordMap,
        type: builtins.type[T],
        *,
        lost: Callable[[], int] | None = None,
        short: Short = "error",
    ) -> None: ...
    @overload
    def __init__(
        self: RingBuffer[Any],
        source: RecordMap,
        type: str | RecordCodec | None = None,
        *,
        lost: Callable[[], int] | None = None,
        short: Short = "error",
    ) -> None: ...
    def __init__(
        self,
        source: RecordMap,
        type: RecordType = None,  # noqa: A002 - as in `Map.read(type=...)`
        *,
        lost: Callable[[], int] | None = None,
        short: Short = "error",
    ) -> None:
        """Map the ring of `source`.

        Args:
            source: the map; it must stay open.
            type: the type of the records: see `purebpf.loader.rings.record_types`.
            lost: returns the program's count: `lambda: obj.globals["dropped"]`.
            short: for records that are shorter than their type: "error", or "zero" to fill them.

        Raises:
            KernelError: mmap(2) refused.
            SchemaError: the type is not known, or is not in the object's BTF.
        """
        super().__init__(source, type, short)
        self._count_lost = lost
        self._size = source.max_entries
        page, fd = mmap.PAGESIZE, source.fileno()
        self._ours = Memory(fd, page, writable=True)
        try:
            self._kernels = Memory(fd, page + 2 * self._size, offset=page)
        except BaseException:
            self._ours.close()
            raise
        self._consumer = self._ours.view.cast("Q")
        self._producer = self._kernels.view[:page].cast("Q")
        self._data = self._kernels.view[page:]
        self._words = self._data.cast("I")

    @property
    def lost(self) -> int | None:
        """Records that found no room, as the program counted them; None: it was not said where."""
        return None if self._count_lost is None else self._count_lost()

    def fileno(self) -> int:
        """The map's descriptor, which polls as readable. ValueError: reader or map are closed."""
        self._check()
        return self._source.fileno()

    def views(self) -> Iterator[memoryview]:
        """The records that are there when this starts, as memory of the ring: nothing is copied.

        A view is valid until the next record: then it is released and its space is the program's
        again. A slice of it is not released, and shows data written over it. While a view is out,
        another loop would see its record as well.

        Raises:
            FormatError: the ring makes no sense.
            ValueError: the reader is closed.
        """
        for record in self._taken.raw():
            yield memoryview(record)
        self._check()
        target = self._producer[0]
        while (position := self._consumer[0]) < target:
            spans, following = find_committed(self._words, position, target, 1)
            if following == position:
                return  # the program is still writing it
            try:
                for offset, length in spans:
                    start = (position & (self._size - 1)) + offset
                    with self._data[start : start + length] as view:
                        yield view
            finally:
                if not self._closed and self._consumer[0] == position:
                    self._consumer[0] = following

    def drain_numpy(self) -> Any:
        """The records that are there when this starts, as one structured numpy array.

        For millions of records a second: it creates no Python object for any of them. The type must
        be in BTF, of fixed size. Needs numpy: `pip install purebpf[numpy]`. Where a record is too
        short the array ends before it, and the next call raises and goes past it.

        Raises:
            NotSupportedError: numpy is not installed.
            SchemaError: the records have no type in BTF.
            FormatError, ValueError: as `drain`.
        """
        from purebpf.btf.codec.columns import dtype, numpy
        from purebpf.loader.rings.ring_numpy import next_run, rows

        self._check()
        btf, type_id = record_type_id(self._source, self.record_type)
        row = dtype(btf, type_id, btf.sizeof(type_id))
        fill = self._short == "zero"
        records, left = rows(self._taken.raw(), row, fill=fill)
        if left:
            short = None if len(records) else left.pop(0)
            self._taken = PendingRecords(iter(left), self._decoder)
            if short is not None:
                raise too_short(len(short), row.itemsize)
            return records
        runs = [records]
        target = self._producer[0]
        while run := next_run(self._data, self._consumer[0], target, row, fill=fill):
            if run.problem is not None and any(map(len, runs)):
                break
            self._consumer[0] = run.position
            if run.problem is not None:
                raise run.problem
            runs.append(run.records)
        return numpy().concatenate(runs)

    def close(self) -> None:
        """Unmap, and wake waiting threads; again is harmless. The map stays open.

        Raises:
            BufferError: a slice of one of the `views` is still in use, or another thread copies
                with `drain_numpy`; close it again then.
        """
        super().close()
        for view in (self._consumer, self._producer, self._words, self._data):
            view.release()
        self._ours.close()
        self._kernels.close()

    def _batches(self) -> Iterator[UniformRecords | Iterator[bytes]]:
        self._check()
        target = self._producer[0]
        # The position is read anew each time: another loop may have moved it.
        while (position := self._consumer[0]) < target:
            length, count = alike(self._words, position, target, _BATCH)
            if count:
                step = stride(length)
                yield UniformRecords(
                    self._consume(position, count * step), HEADER_SIZE, length, step
                )
                continue
            spans, following = find_committed(self._words, position, target, _BATCH)
            if following == position:
                return  # the program is still writing it
            yield _slices(self._consume(position, following - position), spans)

    def _consume(self, position: int, size: int) -> bytes:
        """Copies that much of the ring and returns its space to the program."""
        start = position & (self._size - 1)
        data = bytes(self._data[start : start + size])
        self._consumer[0] = position + size
        return data


def _slices(data: bytes, spans: list[tuple[int, int]]) -> Iterator[bytes]:
    return (data[offset : offset + length] for offset, length in spans)
