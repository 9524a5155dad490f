"""Maps that are read and written as memory: rings, arrays that are mapped, arenas."""

from __future__ import annotations

import asyncio
import mmap
import struct
from itertools import islice

import pytest

from purebpf.abi.bpf import BPF_F_MMAPABLE
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import NotSupportedError, SchemaError
from purebpf.loader.maps.map import Map
from tests.kernel.map_specs import spec
from tests.kernel.producers import Numbers, ring_producer

pytestmark = pytest.mark.needs("bpf")


def test_a_ring_buffer_is_rounded_up_and_readable():
    with Map.create(spec(t.BPF_MAP_TYPE_RINGBUF, 0, 16, mmap.PAGESIZE + 1)) as m:
        assert m.max_entries == 2 * mmap.PAGESIZE
        assert list(m.read(timeout=0, type=bytes)) == []
        with m.reader(bytes) as reader:
            assert list(reader.drain()) == []


def test_a_ring_is_read_through_its_map():
    async def first(m: Map, count: int) -> list[int]:
        found: list[int] = []
        async for record in m:
            found.append(record)
            if len(found) == count:
                break
        return found

    with ring_producer(1 << 16) as producer, Map.from_fd(producer.source.fileno()) as m:
        with pytest.raises(SchemaError, match="unknown record type"):
            m.read()
        producer.send(101)
        assert list(islice(m.read(timeout=0, type=Numbers()), 7)) == list(range(7))
        assert list(m.read(timeout=0)) == list(range(7, 101))
        producer.send(13)
        assert asyncio.run(first(m, 13)) == list(range(101, 114))
        producer.send(1)
        assert list(m.read(timeout=0, type=bytes)) == [struct.pack("=Q", 114)]


def test_only_rings_have_records():
    with Map.create(spec(t.BPF_MAP_TYPE_HASH)) as m:
        with pytest.raises(NotSupportedError, match="a HASH has elements, not records"):
            m.read()
        with pytest.raises(NotSupportedError, match="BPF_F_MMAPABLE"):
            m.mmap()


@pytest.mark.needs("user_ring_buffer")
def test_a_user_ring_is_written_to():
    with Map.create(spec(t.BPF_MAP_TYPE_USER_RINGBUF, 0, 0, mmap.PAGESIZE)) as m:
        with pytest.raises(NotSupportedError, match=r"takes records: see `Map.writer\(\)`"):
            m.read(0)
        with pytest.raises(SchemaError, match=r"a USER_RINGBUF does not have keys: .* writer\(\)"):
            m[0]


def test_an_mmapable_array_is_memory():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_ARRAY, 4, 12, 600, flags=BPF_F_MMAPABLE)) as m,
        m.mmap() as memory,
    ):
        assert memory.size == 3 * mmap.PAGESIZE  # 600 values, each 16 bytes apart
        memory.view[599 * 16 : 599 * 16 + 12] = b"last of them"
        assert m[599] == b"last of them"
        m[1] = b"second value"
        assert bytes(memory.view[16:28]) == b"second value"


@pytest.mark.needs("arena")
def test_an_arena_is_memory():
    arena = spec(t.BPF_MAP_TYPE_ARENA, 0, 0, 4, flags=BPF_F_MMAPABLE)
    with Map.create(arena) as m, m.mmap() as memory:
        assert memory.size == 4 * mmap.PAGESIZE
        memory.view[5 * 1000] = 7
        assert memory.view[5 * 1000] == 7
