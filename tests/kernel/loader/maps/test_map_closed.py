"""A map that is closed while it is read: no call of it reaches the next map with that number."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from purebpf import Map, MapSpec
from purebpf.abi.bpf import BPF_F_NO_PREALLOC, bpf_map_type
from tests.support.probe_calls import descriptors

pytestmark = pytest.mark.needs("bpf")

ENTRIES = 100_000
HASH, TRIE = bpf_map_type.BPF_MAP_TYPE_HASH, bpf_map_type.BPF_MAP_TYPE_LPM_TRIE
WAYS: dict[str, Callable[[Map], Iterator[Any]]] = {
    "keys": iter,
    "values": lambda m: iter(m.values()),
    "items": lambda m: iter(m.items()),
}


def made(kind: bpf_map_type, key_size: int, value_size: int, entries: int) -> Map:
    flags = BPF_F_NO_PREALLOC if kind == TRIE else 0
    return Map.create(MapSpec("closing", kind, key_size, value_size, entries, flags))


def filled(key_size: int, value_size: int, byte: bytes) -> Map:
    found = made(HASH, key_size, value_size, ENTRIES)
    keys = (number.to_bytes(key_size, "little") for number in range(ENTRIES))
    found.update((key, byte * value_size) for key in keys)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_an_iterator_ends_with_its_map(way: str) -> None:
    with filled(4, 8, b"A") as first:
        iterator = WAYS[way](first)
        next(iterator)
        number = first.fileno()
    with filled(8, 1024, b"B") as second:
        assert second.fileno() == number
        with pytest.raises(ValueError, match="closed"):
            for _ in iterator:
                pass


def test_an_iterator_that_follows_keys_ends_with_its_map() -> None:
    with made(TRIE, 8, 4, 10) as first:
        for number in range(3):
            first[b"\x08\0\0\0" + bytes([number, 0, 0, 0])] = b"AAAA"
        iterator = iter(first)
        next(iterator)
        number = first.fileno()
    with made(TRIE, 200, 4, 10) as second:
        assert second.fileno() == number
        second[b"\x08\0\0\0" + b"B" * 196] = b"BBBB"
        with pytest.raises(ValueError, match="closed"):
            next(iterator)


@pytest.mark.parametrize("work", ["get", "items"])
def test_threads_find_their_map_closed(work: str) -> None:
    before = descriptors()
    strange = []

    def read(found: Map) -> None:
        with suppress(ValueError):
            while True:
                if work == "get":
                    values = {found.get(bytes(4), bytes(8))}
                else:
                    values = {value for _, value in found.items()}
                if values != {b"A" * 8}:
                    strange.append(values)

    for _ in range(20):
        first = made(HASH, 4, 8, 64)
        first.update((bytes([number]) * 4, b"A" * 8) for number in range(64))
        threads = [threading.Thread(target=read, args=(first,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.002)
        first.close()
        with made(bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 1_000_000, 1) as second:
            second[0] = b"B" * 1_000_000
            for thread in threads:
                thread.join(10)
                assert not thread.is_alive()
    assert strange == []
    assert descriptors() == before
