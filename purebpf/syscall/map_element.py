"""Fast access to single map elements: the buffers and the attr of a call are used again and again.

A lookup through `purebpf.syscall.bpf` builds an attr each time; here it only copies the key
(`bench/map_element.py` measures the difference). Results are 0 or a negated errno, as a missing
key is an everyday answer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ctypes import get_errno
from typing import Any
from weakref import WeakSet

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.closable import SoleOwner
from purebpf.syscall import backend
from purebpf.syscall.buffer import Buffer
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.map_sizes import Sizes, read_sizes

__all__ = ["Element", "Elements", "Errno", "Write"]

Write = Callable[[bytearray, Any], object]
"""Puts a value into a buffer of its size; an exception it raises ends the call.

What it returns is kept until the call has ended: a descriptor that the bytes name.
"""

_LOOKUP = int(bpf_cmd.BPF_MAP_LOOKUP_ELEM)
_UPDATE = int(bpf_cmd.BPF_MAP_UPDATE_ELEM)
_DELETE = int(bpf_cmd.BPF_MAP_DELETE_ELEM)
_NEXT = int(bpf_cmd.BPF_MAP_GET_NEXT_KEY)
_LOOKUP_AND_DELETE = int(bpf_cmd.BPF_MAP_LOOKUP_AND_DELETE_ELEM)

_SIZE = ATTR["map_elem"].size
_FLAGS_OFFSET = ATTR["map_elem"].fields["flags"][0]
_FLAGS = struct.Struct("=Q")
_CLOSED = "the map is closed"


class Errno(int):
    """The number of the kernel's error, in place of a value."""


class Element(SoleOwner):
    """Room for one key and one value, and the calls that use them.

    Attributes:
        key: the key's bytes; assign with `element.key[:] = ...`, of exactly this length.
        value: the value's bytes.
        next_key: where `next()` puts the key after `key`.
        backend: the kernel's, if the element belongs to it; else None.
        flags: the flags of the last call.
        look_up_now: while `backend` is the current one, `lookup(flags)` in one call of C: 0 or -1.
        update_now: the same of `update`.
    """

    __slots__ = (
        "__weakref__",
        "_attr",
        "_delete",
        "_first",
        "_next",
        "_whole",
        "backend",
        "flags",
        "key",
        "look_up_now",
        "next_key",
        "update_now",
        "value",
    )

    def __init__(self, fd: int, key_size: int, value_size: int) -> None:
        key, value, next_key = Buffer(key_size), Buffer(value_size), Buffer(key_size)
        layout = ATTR["map_elem"]
        key_address = key.address if key_size else 0  # queues and stacks: it must be NULL
        self._attr = Buffer(layout.pack(map_fd=fd, key=key_address, value=value.address))
        self._next = Buffer(layout.pack(map_fd=fd, key=key_address, next_key=next_key.address))
        self._first = Buffer(layout.pack(map_fd=fd, key=0, next_key=next_key.address))
        # A deletion with a value, even its address, is EINVAL.
        self._delete = Buffer(layout.pack(map_fd=fd, key=key_address))
        self.flags = 0
        # The two that are called most, made once for the current backend.
        self.backend = (
            backend.current if isinstance(backend.current, backend.KernelBackend) else None
        )
        if self.backend is not None:
            self.look_up_now = self.backend.prepared(_LOOKUP, self._attr.array, _SIZE)
            self.update_now = self.backend.prepared(_UPDATE, self._attr.array, _SIZE)
        self._whole = (key, value, next_key)
        self.key, self.value, self.next_key = key.data, value.data, next_key.data

    def _set(self, flags: int) -> None:
        try:
            _FLAGS.pack_into(self._attr.data, _FLAGS_OFFSET, flags)
        except struct.error:
            raise ValueError(f"flags must fit in 64 bits, not {flags!r}") from None
        self.flags = flags

    def lookup(self, flags: int = 0) -> int:
        """BPF_MAP_LOOKUP_ELEM of `key` into `value`."""
        if flags != self.flags:
            self._set(flags)
        if backend.current is self.backend:
            return self.look_up_now() and -get_errno()
        return backend.current.bpf(_LOOKUP, self._attr.array, _SIZE)

    def update(self, flags: int = 0) -> int:
        """BPF_MAP_UPDATE_ELEM of `key` with `value`."""
        if flags != self.flags:
            self._set(flags)
        if backend.current is self.backend:
            return self.update_now() and -get_errno()
        return backend.current.bpf(_UPDATE, self._attr.array, _SIZE)

    def delete(self) -> int:
        """BPF_MAP_DELETE_ELEM of `key`."""
        return backend.current.bpf(_DELETE, self._delete.array, _SIZE)

    def lookup_and_delete(self, flags: int = 0) -> int:
        """BPF_MAP_LOOKUP_AND_DELETE_ELEM of `key` into `value`."""
        if flags != self.flags:
            self._set(flags)
        return backend.current.bpf(_LOOKUP_AND_DELETE, self._attr.array, _SIZE)

    def first(self) -> int:
        """BPF_MAP_GET_NEXT_KEY without a key: the first one into `next_key`."""
        return backend.current.bpf(_NEXT, self._first.array, _SIZE)

    def next(self) -> int:
        """BPF_MAP_GET_NEXT_KEY after `key` into `next_key`."""
        return backend.current.bpf(_NEXT, self._next.array, _SIZE)


class Elements(SoleOwner):
    """The idle `Element`s of one map: take one, use it, give it back.

    Each thread, and each signal handler that interrupts one, gets a separate element; no lock is
    held during a call. There are as many as were ever in use at once. The descriptor is closed when
    none is in use: its number may mean another map the moment after, with values of another size.

    Attributes:
        closed: True if it creates no more elements.
        descriptor: the map's.
        sizes: bytes of a key and of a value, from the kernel: so long are an element's buffers.
    """

    __slots__ = ("_idle", "_known", "closed", "descriptor", "sizes")

    def __init__(self, descriptor: Descriptor, sizes: Sizes | None = None) -> None:
        """Serve the map `descriptor`; `sizes` are as the map says, when that was read before.

        Raises:
            KernelError, NotSupportedError: as `purebpf.syscall.map_sizes.read_sizes`.
        """
        self.descriptor = descriptor
        self.sizes = read_sizes(descriptor.fileno()) if sizes is None else sizes
        self._idle: list[Element] = []
        self._known: WeakSet[Element] = WeakSet()  # one that an exception dropped is not waited for
        self.closed = False

    def take(self) -> Element:
        """An element for one thread.

        Raises:
            ValueError: the map is closed.
        """
        try:
            return self._idle.pop()
        except IndexError:
            return self._new()

    def _new(self) -> Element:
        element = Element(self.fileno(), self.sizes.key, self.sizes.value)
        self._known.add(element)
        return element

    def give(self, element: Element) -> None:
        """Hand an element back."""
        self._idle.append(element)
        if self.closed:
            self.close()

    def fileno(self) -> int:
        """The map's descriptor, for a call that hands the kernel no memory.

        Raises:
            ValueError: the map is closed.
        """
        if self.closed:
            raise ValueError(_CLOSED)
        return self.descriptor.fileno()

    def reader(self, write: Write, read: Callable[[bytearray], Any]) -> Callable[..., Any]:
        """Return a function that returns for `(key, flags=0)` the result of `read` on the value, or
        an `Errno`.

        It raises ValueError when the map is closed. Make it once and keep it: a call looks up few
        names, and `take` and `give` are written out, which saves a fifth of Python's time for a
        look-up.
        """
        idle, new = self._idle, self._new

        def look_up(key: Any, flags: int = 0) -> Any:
            try:
                element = idle.pop()
            except IndexError:
                element = new()
            try:
                _kept = write(element.key, key)
                if backend.current is element.backend and flags == element.flags:
                    result = element.look_up_now() and -get_errno()
                else:
                    result = element.lookup(flags)
                if not result:
                    return read(element.value)
            finally:
                idle.append(element)
                if self.closed:
                    self.close()
            return Errno(-result)

        return look_up

    def updater(self, write_key: Write, write_value: Write) -> Callable[..., int]:
        """Return a function that stores a value for `(key, value, flags=0)`: 0, or a negated
        errno; as `reader`.
        """
        idle, new = self._idle, self._new

        def update(key: Any, value: Any, flags: int = 0) -> int:
            try:
                element = idle.pop()
            except IndexError:
                element = new()
            try:
                _kept = write_key(element.key, key)
                write_value(element.value, value)
                if backend.current is element.backend and flags == element.flags:
                    return element.update_now() and -get_errno()
                return element.update(flags)
            finally:
                idle.append(element)
                if self.closed:
                    self.close()

        return update

    @contextmanager
    def using(self) -> Iterator[int]:
        """The map's descriptor, which stays open until the block ends.

        Raises:
            ValueError: the map is closed.
        """
        element = self.take()
        try:
            yield self.descriptor.fileno()
        finally:
            self.give(element)

    def close(self) -> None:
        """Close the map when its last user is done; again is harmless."""
        self.closed = True
        with suppress(IndexError):
            while True:  # nothing is left to take, and no new one is made
                self._known.discard(self._idle.pop())
        if not self._known:
            self.descriptor.close()
