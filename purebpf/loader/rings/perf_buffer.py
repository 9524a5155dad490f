"""`PerfBuffer`: the records that programs send with bpf_perf_event_output to a PERF_EVENT_ARRAY
map.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, overload

from purebpf.abi.perf import perf_event_sample_format, perf_event_type
from purebpf.errors import FormatError, KernelError
from purebpf.loader.host.fork_guard import OwnerProcess
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.loader.rings.readers import Reader
from purebpf.loader.rings.record_types import RecordCodec, RecordMap, RecordType, Short
from purebpf.syscall import bpf
from purebpf.typevars import T, V
from purebpf.wire.perf_ring import frames, raw_payload, raw_run
from purebpf.wire.uniform_records import UniformRecords

if TYPE_CHECKING:
    import builtins

__all__ = ["PerfBuffer"]

_LOST = struct.Struct("=8xQ")


class PerfBuffer(Reader[V]):
    """Reads a ring for each online CPU, and owns the rings' events (Linux 4.4).

    Commit a43eec304259, "bpf: introduce bpf_perf_event_output() helper".

    Records come CPU after CPU: between CPUs they are not in the order of time. A record is as long
    as the kernel made it, up to 7 bytes longer than the program's data. On a CPU that comes online
    later, the program's output fails with ENOENT.
    """

    @overload
    def __init__(
        self: PerfBuffer[T],
        source: RecordMap,
        type: builtins.type[T],
        *,
        pages: int = 64,
        wakeup: int = 1,
        short: Short = "error",
    ) -> None: ...
    @overload
    def __init__(
        self: PerfBuffer[Any],
        source: RecordMap,
        type: str | RecordCodec | None = None,
        *,
        pages: int = 64,
        wakeup: int = 1,
        short: Short = "error",
    ) -> None: ...
    def __init__(
        self,
        source: RecordMap,
        type: RecordType = None,  # noqa: A002 - as in `Map.read(type=...)`
        *,
        pages: int = 64,
        wakeup: int = 1,
        short: Short = "error",
    ) -> None:
        """Open an event on each CPU, map its ring and put it into `source`.

        Args:
            source: the map; it must stay open.
            type: the type of the records: see `purebpf.loader.rings.record_types`.
            pages: data pages of each ring, a power of two.
            wakeup: wake the reader after this many records of a CPU. With more than 1, those
                that sent no wake-up are seen when the time is over.
            short: for records that are shorter than their type: "error", or "zero" to fill them.

        Raises:
            KernelError: the kernel refused an event, a ring, or an element of the map.
            SchemaError: the type is not known, or is not in the object's BTF.
            ValueError: `pages` is not a power of two.
        """
        super().__init__(source, type, short)
        self._owner_process = OwnerProcess()
        self._lost_records = 0
        self._lost_at_close: int | None = None
        with ExitStack() as undo:
            self._events = undo.enter_context(
                PerfEvents.open(
                    "bpf-output",
                    sample_type=perf_event_sample_format.PERF_SAMPLE_RAW,
                    sample_period=1,
                    wakeup_events=wakeup,
                )
            )
            self._epoll = undo.enter_context(select.epoll())
            self._rings = []
            for event in self._events:
                self._rings.append(event.map_ring(pages))
                self._epoll.register(event.fileno(), select.EPOLLIN)
                self._put(event.cpu, event.fileno())
                undo.callback(self._remove, event.cpu)
            self._closing = undo.pop_all()

    @property
    def lost(self) -> int:
        """Records that found no room in their ring, exactly from Linux 6.0 on.

        Before (commit 119a784c8127, "perf/core: Add a new read format to get a number of lost
        samples"), the kernel says so only when a later record finds room: the end of a burst is not
        counted.
        """
        if self._lost_at_close is not None:
            return self._lost_at_close
        counted = self._events.lost
        return self._lost_records if counted is None else counted

    def fileno(self) -> int:
        """An epoll descriptor over every CPU's ring. ValueError: reader or map are closed.

        The kernel takes the events out of a map that is closed: nothing more would come.
        """
        self._check()
        self._source.fileno()
        return self._epoll.fileno()

    def close(self) -> None:
        """Remove the events from the map, unmap and close them, wake waiters; again is harmless.

        A forked child that closes the reader leaves the rings in the map, for its parent.
        """
        if not self._closed:
            super().close()
            with self._closing:
                self._lost_at_close = self.lost

    def _batches(self) -> Iterator[UniformRecords | Iterator[bytes]]:
        self._check()
        # Every ring, whichever woke us: a poller may not learn which it was.
        for ring in self._rings:
            if len(ring):
                data = ring.consume()
                yield raw_run(data, perf_event_type.PERF_RECORD_SAMPLE) or self._payloads(data)

    def _came_meanwhile(self) -> bool:
        # perf_poll() reports a record to the first poller, once; adding a descriptor to an
        # epoll set polls it, and epoll_wait() then finds nothing (kernel/events/core.c).
        return any(len(ring) for ring in self._rings)

    def _payloads(self, data: bytes) -> Iterator[bytes]:
        for kind, _, start, end in frames(data):
            if kind == perf_event_type.PERF_RECORD_SAMPLE:
                offset, length = raw_payload(data, start, end)
                yield data[offset : offset + length]
            elif kind == perf_event_type.PERF_RECORD_LOST:
                if end - start < _LOST.size:
                    raise FormatError("perf ring", f"offset {start}", "a short LOST record")
                self._lost_records += _LOST.unpack_from(data, start)[0]

    def _put(self, cpu: int, fd: int) -> None:
        key, value = struct.pack("=I", cpu), struct.pack("=i", fd)
        try:
            bpf.map_update_elem(self._source.fileno(), key, value)
        except KernelError as error:
            raise KernelError(
                error.call,
                error.errno or 0,
                f"map {self._source.name!r}: the event of CPU {cpu}",
                why=f"the map has {self._source.max_entries} entries",
            ) from None

    def _remove(self, cpu: int) -> None:
        if not self._owner_process.is_here:
            return
        try:
            bpf.map_delete_elem(self._source.fileno(), struct.pack("=I", cpu))
        except (KernelError, ValueError):
            return  # the map is closed, or another process removed the element
