"""Many elements at once: in batches where kernel and map offer them, else one by one.

Reads raise `KernelError` for a type with keys that cannot be listed, and `map_walk.Interrupted`
where keys are followed and vanish faster than that goes. The result may lack elements that come or
go during the read, and has each of the others once.

Elements are decoded by the chunk and chained: no Python step runs for each.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from purebpf.errors import SchemaError
from purebpf.loader.maps import map_traits
from purebpf.loader.maps.map_batch import NO_BATCH, Unsupported, chunk_size, chunks
from purebpf.loader.maps.map_core import Store
from purebpf.loader.maps.map_walk import walk
from purebpf.syscall import bpf
from purebpf.syscall.map_element import Element

__all__ = [
    "Read",
    "clear",
    "columns",
    "count",
    "delete",
    "drain",
    "keys",
    "pairs",
    "raw_keys",
    "store_rows",
    "take",
    "update",
    "values",
]


Read = Callable[[Element], int]
"""Fills the value of an element with its key set: 0, or a negated errno."""


def keys(store: Store) -> Iterator[Any]:
    """Every key. An array's take no system call."""
    return chain.from_iterable(_keys(store))


def _keys(store: Store) -> Iterator[Iterable[Any]]:
    if store.info.type in map_traits.ARRAYS:
        yield range(store.info.max_entries)
        return
    try:
        for some, _ in _chunks(store):
            yield store.key.iter_decode(some)
    except Unsupported:
        yield map(store.key.decode, _walk_keys(store))


def count(store: Store) -> int:
    """Return the number of keys."""
    if store.info.type in map_traits.ARRAYS:
        return store.info.max_entries
    try:
        return sum(len(some) for some, _ in _chunks(store)) // store.shape.key_size
    except Unsupported:
        return sum(1 for _ in _walk_keys(store))


def raw_keys(store: Store) -> Iterator[bytes]:
    """The bytes of every key."""
    if store.info.type in map_traits.ARRAYS:
        yield from map(store.key.encode, range(store.info.max_entries))
        return
    size = store.shape.key_size
    try:
        for some, _ in _chunks(store):
            data = bytes(some)
            yield from (data[at : at + size] for at in range(0, len(data), size))
    except Unsupported:
        yield from _walk_keys(store)


def pairs(store: Store) -> Iterator[tuple[Any, Any]]:
    """Every (key, value)."""
    return chain.from_iterable(_pairs(store))


def _pairs(store: Store) -> Iterator[Iterable[tuple[Any, Any]]]:
    key, value = store.key, store.value
    try:
        for some, theirs in _chunks(store):
            yield zip(key.iter_decode(some), value.iter_decode(theirs), strict=True)
    except Unsupported:
        elements = _one_by_one(store, Element.lookup)
        yield ((key.decode(raw), value.decode(data)) for raw, data in elements)


def values(store: Store) -> Iterator[Any]:
    """Every value."""
    return chain.from_iterable(_values(store))


def _values(store: Store) -> Iterator[Iterable[Any]]:
    try:
        for _, theirs in _chunks(store):
            yield store.value.iter_decode(theirs)
    except Unsupported:
        yield (store.value.decode(data) for _, data in _one_by_one(store, Element.lookup))


def columns(store: Store) -> tuple[bytearray, bytearray]:
    """The bytes of every key, and of every value, one after the other."""
    keys, theirs = bytearray(), bytearray()
    try:
        for some, more in _chunks(store):
            keys += some
            theirs += more
    except Unsupported:
        for raw, data in _one_by_one(store, Element.lookup):
            keys += raw
            theirs += data
    return keys, theirs


def drain(store: Store) -> list[tuple[Any, Any]]:
    """Take every element out of a map, and give them back."""
    if store.info.type in map_traits.MAP_VALUES:
        return _drain_maps(store)
    key, value = store.key, store.value
    taken: list[tuple[Any, Any]] = []
    try:
        for some, theirs in _chunks(store, delete=True):
            taken += zip(key.iter_decode(some), value.iter_decode(theirs), strict=True)
    except Unsupported:
        for raw, data in _one_by_one(store, take):
            taken.append((key.decode(raw), value.decode(data)))
    return taken


def _drain_maps(store: Store) -> list[tuple[Any, Any]]:
    """All inner maps are opened before one is deleted: this may be their last reference."""
    taken: list[tuple[Any, Any]] = []
    with ExitStack() as opened:
        inner_maps = [(key, opened.enter_context(inner)) for key, inner in pairs(store)]
        for key, inner in inner_maps:
            if _delete_singly(store, [store.key.encode(key)]):
                taken.append((key, inner))
            else:  # another process took it
                inner.close()
        opened.pop_all()
    return taken


def take(element: Element) -> int:
    """Look up and delete; in two steps where there is no command for it.

    Hashes have had it since Linux 5.14 (commit 3e87f192b405).
    """
    result = element.lookup_and_delete()
    if -result not in NO_BATCH:
        return result
    return element.lookup() or element.delete()


def _chunks(store: Store, *, delete: bool = False) -> Iterator[tuple[memoryview, memoryview]]:
    """Batches of every element; Unsupported, before the first one, where there are none."""
    if not store.batches or store.info.type not in map_traits.BATCHED:
        raise Unsupported
    try:
        yield from chunks(store.elements, store.shape, delete=delete)
    except OSError as error:
        raise store.explain_failure(error.errno or 0, "reading", "LOOKUP_BATCH") from None


def _walk_keys(store: Store) -> Iterator[bytes]:
    """The keys, without batches."""
    if store.info.type in map_traits.SLOTS:
        yield from (raw for raw, _ in _one_by_one(store, Element.lookup))
        return
    try:
        yield from walk(store.elements, store.shape.max_entries)
    except OSError as error:
        raise store.explain_failure(error.errno or 0, "listing", "GET_NEXT_KEY") from None


def _one_by_one(store: Store, read: Read) -> Iterator[tuple[bytes, bytes]]:
    indexed = store.info.type in map_traits.ARRAYS | map_traits.SLOTS
    indexes = map(store.key.encode, range(store.info.max_entries))
    for raw in indexes if indexed else _walk_keys(store):
        element = store.elements.take()
        try:
            element.key[:] = raw
            result = read(element)
            data = bytes(element.value)
        finally:
            store.elements.give(element)
        if result == 0:
            yield raw, data
        elif result != -errno.ENOENT:
            raise store.explain_failure(-result, "reading", "LOOKUP_ELEM", store.key_text(raw))


def clear(store: Store) -> None:
    """Delete every element; an array's become zero.

    Raises:
        KernelError: the map refuses to delete.
    """
    if store.info.type in map_traits.ARRAYS:
        zero = bytes(store.shape.value_size)
        update(store, ((index, zero) for index in range(store.info.max_entries)), 0)
        return
    try:
        for _ in _chunks(store, delete=True):
            pass
    except Unsupported:
        delete(store, raw_keys(store))


def update(store: Store, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]], flags: int) -> None:
    """Store every pair; stops at the first that is refused.

    Raises:
        KernelError: a refusal; the elements before it are stored.
        SchemaError: a key or value that the map cannot hold.
    """
    count = chunk_size(store.shape)
    for some, theirs in _split_pairs(items, count):
        # A batch that fails half way is repeated singly, which BPF_NOEXIST would not survive.
        if store.batches and not flags:
            raw, data = _encode_all(store, some, "key"), _encode_all(store, theirs, "value")
            if _store_columns(store, raw, data):
                continue
            store.batches = False
        _update_singly(store, zip(some, theirs, strict=True), flags)


def _split_pairs(
    items: Mapping[Any, Any] | Iterable[tuple[Any, Any]], count: int
) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
    """Keys and values apart, `count` at a time."""
    if isinstance(items, dict):
        keys, values = iter(items), iter(items.values())
        while some := list(islice(keys, count)):
            yield some, list(islice(values, count))
        return
    pairs = iter(items.items() if isinstance(items, Mapping) else items)
    while chunk := list(islice(pairs, count)):
        if {tuple}.issuperset(map(type, chunk)) and {2}.issuperset(map(len, chunk)):
            yield list(map(itemgetter(0), chunk)), list(map(itemgetter(1), chunk))
        else:
            columns: Iterator[tuple[Any, ...]] = zip(*chunk, strict=True)
            some, theirs = map(list, columns)
            yield some, theirs


def _encode_all(store: Store, values: Sequence[Any], description: str) -> bytes:
    codec = store.key if description == "key" else store.value
    encode_many: Callable[[Sequence[Any]], bytes] | None = getattr(codec, "encode_many", None)
    try:
        if encode_many is not None:
            return encode_many(values)
        return b"".join(map(codec.encode, values))
    except SchemaError as error:
        raise store.named(error, description) from None


def store_rows(store: Store, keys: memoryview, values: memoryview) -> None:
    """Store the bytes of many keys and values; KernelError as `update`."""
    key_size, value_size = store.shape.key_size, store.shape.value_size
    count, step = len(keys) // key_size, chunk_size(store.shape)
    for at in range(0, count, step):
        some = bytes(keys[at * key_size : (at + step) * key_size])
        theirs = bytes(values[at * value_size : (at + step) * value_size])
        if store.batches and _store_columns(store, some, theirs):
            continue
        store.batches = False
        rows = [
            (some[i * key_size :][:key_size], theirs[i * value_size :][:value_size])
            for i in range(len(some) // key_size)
        ]
        _update_singly(store, rows, 0)


def _store_columns(store: Store, some: bytes, theirs: bytes) -> bool:
    """Store the values `theirs` of the keys `some`; False when there are no batches here."""
    size = store.shape.key_size
    count = len(some) // size
    with store.elements.using() as fd:
        result = bpf.map_update_batch(fd, some, theirs, count)
    if result.errno in NO_BATCH:
        return False
    if result.errno:
        start = min(result.done, count - 1) * size
        at = store.key_text(some[start : start + size])
        raise store.explain_failure(result.errno, "updating", "UPDATE_BATCH", at)
    return True


def _update_singly(store: Store, items: Iterable[tuple[Any, Any]], flags: int) -> None:
    for key, value in items:
        raw, data = store.encode_key(key), store.encode_value(value)
        element = store.elements.take()
        try:
            element.key[:], element.value[:] = raw, data
            if result := element.update(flags):
                at = store.key_text(raw)
                raise store.explain_failure(-result, "updating", "UPDATE_ELEM", at)
        finally:
            store.elements.give(element)


def delete(store: Store, raw: Iterable[bytes]) -> int:
    """Delete the keys that are there: how many there were.

    Raises:
        KernelError: the map refuses to delete.
    """
    remaining = iter(raw)
    deleted = 0
    while chunk := list(islice(remaining, chunk_size(store.shape))):
        done = _delete_batch(store, chunk) if store.batches else 0
        deleted += done + _delete_singly(store, chunk[done:])
    return deleted


def _delete_batch(store: Store, chunk: list[bytes]) -> int:
    """Return how many were deleted before the first missing or refused one."""
    with store.elements.using() as fd:
        result = bpf.map_delete_batch(fd, b"".join(chunk), len(chunk))
    return result.done if result.errno in (0, errno.ENOENT) else 0


def _delete_singly(store: Store, chunk: list[bytes]) -> int:
    deleted = 0
    element = store.elements.take()
    try:
        for key in chunk:
            element.key[:] = key
            result = element.delete()
            if result == 0:
                deleted += 1
            elif result != -errno.ENOENT:
                raise store.explain_failure(
                    -result, "deleting from", "DELETE_ELEM", store.key_text(key)
                )
    finally:
        store.elements.give(element)
    return deleted
