"""`UserRingBuffer`: sends records to programs, through a BPF_MAP_TYPE_USER_RINGBUF (Linux 6.1).

Commit 583c1f420173.
"""

from __future__ import annotations

import mmap
import select
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from purebpf.closable import Closing
from purebpf.loader.rings.record_types import RecordMap, record_type_id
from purebpf.loader.rings.waiters import LONGEST_S, Waiters
from purebpf.syscall.memory import Memory
from purebpf.wire.ring_buffer import stride
from purebpf.wire.user_ring import frame_records

__all__ = ["Encoder", "UserRingBuffer"]


class Encoder(Protocol):
    """The part of a codec (`purebpf.btf.codec.codecs.codec`) that is used here."""

    def encode(self, value: Any, /) -> bytes:
        """The bytes of `value`; SchemaError when the type cannot hold it."""


class UserRingBuffer(Closing):
    """Writes records that a program takes with bpf_user_ringbuf_drain(), when it next runs.

    One writer for a map, and one thread at a time: the position up to which it was written is the
    map's. Positions are stored as single aligned words, behind the data (see `wire.user_ring`).
    """

    def __init__(
        self,
        target: RecordMap,
        type: str | Encoder | type | None = None,  # noqa: A002 - as in RingBuffer
    ) -> None:
        """Map the ring of `target`.

        Args:
            target: the map; it must stay open.
            type: the type of the records: see `purebpf.loader.rings.record_types`.

        Raises:
            KernelError: mmap(2) refused.
            SchemaError: the type is not known, or is not in the object's BTF.
        """
        self._target = target
        self._encode = _encoder(target, type)
        self._size = target.max_entries
        self._waiters = Waiters()
        self._closed = False
        page, fd = mmap.PAGESIZE, target.fileno()
        self._kernels = Memory(fd, page)
        try:
            self._ours = Memory(fd, page + 2 * self._size, offset=page, writable=True)
        except BaseException:
            self._kernels.close()
            raise
        self._consumer = self._kernels.view.cast("Q")
        self._producer = self._ours.view[:page].cast("Q")
        self._data = self._ours.view[page:]

    def write(self, record: Any, timeout: float | None = 0.0) -> bool:
        """Send one record; whether there was room for it within `timeout` seconds.

        Without a timeout (None) it waits for as long as it takes; 0 does not wait.

        Raises:
            SchemaError: a record that its type cannot hold.
            ValueError: it is longer than the ring; the ring buffer is closed, maybe during the
                call.
            OSError: EMFILE, there is no free descriptor to wait with.
        """
        data = self._encode_record(record)
        if self._append([data]):
            return True
        return timeout != 0 and self._wait_and_append(data, timeout)

    def write_all(self, records: Iterable[Any]) -> int:
        """Send many records, as many as there is room for: how many those are.

        Raises:
            SchemaError: a record that its type cannot hold; nothing is sent.
            ValueError: one is longer than the ring, and nothing is sent; the ring buffer is closed.
        """
        return self._append(list(map(self._encode_record, records)))

    def fileno(self) -> int:
        """The map's descriptor; polls as writable when there is room. ValueError: closed."""
        self._check()
        return self._target.fileno()

    def close(self) -> None:
        """Unmap, and wake threads that wait for room; again is harmless.

        The map stays open, and the records stay in it.
        """
        self._closed = True
        self._waiters.wake()
        for view in (self._consumer, self._producer, self._data):
            view.release()
        self._ours.close()
        self._kernels.close()

    def __repr__(self) -> str:
        return f"<UserRingBuffer of {self._target.name!r}{', closed' if self._closed else ''}>"

    def _check(self) -> None:
        if self._closed:
            raise ValueError(f"the user ring buffer of {self._target.name!r} is closed")

    def _encode_record(self, record: Any) -> bytes:
        data = self._encode(record)
        if stride(len(data)) > self._size:
            raise ValueError(f"a record of {len(data)} bytes exceeds a ring of {self._size}")
        return data

    def _append(self, records: list[bytes]) -> int:
        self._check()
        position = self._producer[0]
        room = self._size - (position - self._consumer[0])
        data, count = frame_records(records, room)
        start = position & (self._size - 1)
        self._data[start : start + len(data)] = data
        self._producer[0] = position + len(data)
        return count

    def _wait_and_append(self, data: bytes, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        # The ring polls as writable as long as one byte is free; an edge is a drain.
        with self._waiters.wake_event() as wake_event, select.epoll() as poll:
            poll.register(wake_event.fileno(), select.EPOLLIN)
            poll.register(self.fileno(), select.EPOLLOUT | select.EPOLLET)
            while not self._append([data]):
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                poll.poll(None if left is None else min(left, LONGEST_S))
        return True


def _encoder(target: RecordMap, type_: str | Encoder | type | None) -> Callable[[Any], bytes]:
    """The function that makes the bytes of one record."""
    if type_ is bytes:
        return bytes
    if type_ is not None and not isinstance(type_, str | type):
        return type_.encode
    from purebpf.btf.codec.codecs import codec

    btf, type_id = record_type_id(target, type_)
    return codec(btf, type_id).encode
