"""Many elements in one system call (BPF_MAP_*_BATCH, Linux 5.6), where the map offers it.

Commit cb4d03ab499d (lookup), commit aa2e93b8e58e (update, delete), commit 057996380a42 (lookup with
deletion, and hash maps).

Support is detected by trying: `Unsupported` is raised before anything was done.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from purebpf.errors import ENOTSUPP
from purebpf.syscall import bpf
from purebpf.syscall.command import BatchResult
from purebpf.syscall.map_element import Elements
from purebpf.tuples import NamedTuple

__all__ = ["NO_BATCH", "Shape", "Unsupported", "chunk_size", "chunks"]

NO_BATCH = (errno.EINVAL, errno.EOPNOTSUPP, ENOTSUPP)
"""The kernel, or the map type, has no such command."""

_CHUNK_BYTES = 1 << 20
_LEAST = 64


class Unsupported(Exception):  # noqa: N818 - an answer, caught by the caller
    """No batch commands here."""


class Shape(NamedTuple):
    """The bytes of a key and of the value as the kernel moves it, and the map's max_entries."""

    key_size: int
    value_size: int
    max_entries: int


def chunk_size(shape: Shape) -> int:
    """Elements to ask for at once: about a mebibyte of them."""
    fitting = _CHUNK_BYTES // max(shape.key_size + shape.value_size, 1)  # a ring has neither
    return min(max(fitting, _LEAST), shape.max_entries)


def chunks(
    elements: Elements, shape: Shape, *, delete: bool = False
) -> Iterator[tuple[memoryview, memoryview]]:
    """Every element as (keys, values), a chunk at a time; `delete` takes them out of the map.

    The memory is used again for the next chunk. A hash is read bucket by bucket, so that an
    element is seen once, and one that stays is not missed. Where a bucket has more elements than
    fit (ENOSPC), there is more room the next time.

    Raises:
        Unsupported: by the kernel or the map, before the first chunk.
        OSError: another failure; its errno is the kernel's.
        ValueError: the map is closed.
    """
    command = bpf.map_lookup_and_delete_batch if delete else bpf.map_lookup_batch
    count = chunk_size(shape)
    cursor = bytearray(max(4, shape.key_size))
    start: bytearray | None = None
    keys, values = _room(count, shape)
    while True:
        with elements.using() as fd:
            result = command(
                fd, in_batch=start, out_batch=cursor, keys=keys, values=values, count=count
            )
        if result.errno not in (0, errno.ENOENT):
            count = _more_room(result, count, shape, first=start is None)
            keys, values = _room(count, shape)
            continue
        if result.done:
            yield _cut_to_size(keys, values, shape, result.done)
        if result.errno == errno.ENOENT:
            return
        start = cursor


def _room(count: int, shape: Shape) -> tuple[bytearray, bytearray]:
    return bytearray(count * shape.key_size), bytearray(count * shape.value_size)


def _cut_to_size(
    keys: bytearray, values: bytearray, shape: Shape, done: int
) -> tuple[memoryview, memoryview]:
    return (
        memoryview(keys)[: done * shape.key_size],
        memoryview(values)[: done * shape.value_size],
    )


def _more_room(result: BatchResult, count: int, shape: Shape, *, first: bool) -> int:
    """The number of elements to make room for after a failure, if that can cure it."""
    if first and result.errno in NO_BATCH:
        raise Unsupported
    if result.errno != errno.ENOSPC or count > 2 * shape.max_entries:
        raise OSError(result.errno, "BPF_MAP_LOOKUP_BATCH")
    return 2 * count
