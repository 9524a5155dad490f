"""Every type of map that this kernel has: what goes in comes out."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import mmap
import os
import signal
import socket
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from purebpf.abi.bpf import (
    BPF_EXIST,
    BPF_F_MMAPABLE,
    BPF_F_NO_PREALLOC,
    BPF_NOEXIST,
    bpf_map_type,
)
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.btf.parse import Btf
from purebpf.errors import KernelError, NotSupportedError, SchemaError
from purebpf.kernel import cpus, map_kinds
from purebpf.kernel.map import Map
from purebpf.kernel.perf_event import PerfEvent
from purebpf.spec import MapSpec
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor
from tests.kernel.producers import Numbers, ring_producer
from tests.support.btf_builder import BtfBuilder

pytestmark = pytest.mark.needs("bpf")

RETURN_0 = struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
SOCKET_FILTER, TRACEPOINT = 1, 5

BUILDER = BtfBuilder()
U32 = BUILDER.int("unsigned int", 4)
U64 = BUILDER.int("unsigned long long", 8)
CHAR = BUILDER.int("char", 1, signed=True)
TEXT = BUILDER.array(CHAR, 6, U32)
KEY = BUILDER.struct("key", [("pid", U32), ("comm", TEXT)])  # 10 bytes and 2 of padding
VALUE = BUILDER.struct("value", [("total", U64), ("last", U32)])
BTF = BUILDER.btf()


def spec(kind: int, key: int = 4, value: int = 4, entries: int = 8, **more) -> MapSpec:
    name = map_kinds.type_name(kind).lower()
    return MapSpec(name, kind, key, value, entries, **more)


@pytest.fixture(scope="module")
def btf_fd() -> Iterator[int]:
    with bpf.btf_load(BTF.data) as descriptor:
        yield descriptor.fileno()


def typed(kind: int, entries: int = 100, flags: int = 0) -> MapSpec:
    return spec(kind, 12, 16, entries, flags=flags, key_type_id=KEY, value_type_id=VALUE)


HASHES = [t.BPF_MAP_TYPE_HASH, t.BPF_MAP_TYPE_LRU_HASH]
PER_CPU_HASHES = [t.BPF_MAP_TYPE_PERCPU_HASH, t.BPF_MAP_TYPE_LRU_PERCPU_HASH]


@pytest.mark.parametrize("kind", HASHES, ids=map_kinds.type_name)
def test_keys_with_padding_that_is_not_zero_are_found(kind):
    keys = [struct.pack("=I6s", 7, b"sh") + padding for padding in (b"\0\0", b"\1\0", b"\0\xff")]
    with Map.create(typed(kind), btf=BTF) as m, Map.create(typed(kind), btf=BTF) as other:
        m.update((key, (number, 0)) for number, key in enumerate(keys))
        found = dict(m.items())
        assert {m._store.key.encode(key): value.total for key, value in found.items()} == {
            key: number for number, key in enumerate(keys)
        }
        assert set(m) == set(m.keys()) == set(found)
        assert all(key in m and m[key] == m.get(key) == value for key, value in found.items())
        assert m[7, "sh"].total == 0
        other.update(m.items())
        assert dict(other.items()) == found
        assert other.delete(list(other)) == 3
        other.update(m)
        key = next(iter(m))
        assert m.pop(key) == found.pop(key)
        key, value = m.popitem()
        assert found.pop(key) == value
        assert m.drain() == list(found.items())
        assert len(other) == 3


@pytest.mark.parametrize("kind", HASHES, ids=map_kinds.type_name)
def test_hashes_hold_structs(kind, btf_fd):
    with Map.create(typed(kind), btf=BTF, btf_fd=btf_fd) as m:
        assert m.info.btf_id
        for pid in range(50):
            m[pid, f"c{pid}"] = (pid * 10**10, pid)
        assert len(m) == 50
        assert m[7, "c7"].total == 7 * 10**10
        assert m[{"pid": 7, "comm": "c7"}] == m[7, "c7"]
        assert (7, "c7") in m
        assert (7, "c8") not in m
        assert m.get((7, "c8")) is None
        found = dict(m.items())
        assert {key.pid: (key.comm, value.total, value.last) for key, value in found.items()} == {
            pid: (f"c{pid}", pid * 10**10, pid) for pid in range(50)
        }
        assert all(m[key] == value for key, value in found.items())
        assert sorted(key.pid for key in m) == list(range(50))
        del m[7, "c7"]
        with pytest.raises(KeyError):
            m[7, "c7"]
        with pytest.raises(KeyError):
            del m[7, "c7"]


@pytest.mark.needs("rhash")
def test_a_hash_that_grows_holds_structs(btf_fd):
    resizable = typed(t.BPF_MAP_TYPE_RHASH, flags=BPF_F_NO_PREALLOC)
    with Map.create(resizable, btf=BTF, btf_fd=btf_fd) as m:
        m[1, "init"] = (2, 3)
        m.update({(i, "x"): (i, i) for i in range(50)})
        assert m[1, "init"].total == 2
        assert len(m) == 51
        assert {key.pid for key in m} == set(range(50))
        del m[1, "init"]
        assert sorted(value.last for value in m.values()) == list(range(50))


@pytest.mark.needs("insn_array")
def test_an_array_of_instructions_holds_where_they_were():
    with Map.create(spec(t.BPF_MAP_TYPE_INSN_ARRAY, 4, 16)) as m:
        m[3] = struct.pack("=4I", 17, 0, 0, 0)
        assert m[3] == struct.pack("=4I", 17, 0, 0, 0)
        assert len(m) == 8


@pytest.mark.parametrize("kind", PER_CPU_HASHES, ids=map_kinds.type_name)
def test_per_cpu_hashes_hold_a_tuple(kind, btf_fd):
    count = len(cpus.possible())
    with Map.create(typed(kind), btf=BTF, btf_fd=btf_fd) as m:
        m[1, "one"] = [(cpu + 1, cpu) for cpu in range(count)]
        value = m[1, "one"]
        assert [(each.total, each.last) for each in value] == [(n + 1, n) for n in range(count)]
        assert [v for _, v in m.items()] == [value] == list(m.values())
        with pytest.raises(SchemaError, match=f"each of {count} CPUs"):
            m[1, "one"] = [(1, 1)] * (count + 1)


@pytest.mark.parametrize("size", [1, 3, 4, 8, 12])
def test_per_cpu_values_of_any_size_keep_their_cpu(size):
    count = len(cpus.possible())
    values = tuple(bytes([cpu + 1]) * size for cpu in range(count))
    with Map.create(spec(t.BPF_MAP_TYPE_PERCPU_ARRAY, value=size)) as m:
        m[3] = values
        empty = (bytes(size),) * count
        assert [m[index] for index in range(4)] == [empty, empty, empty, values]
        assert list(m.values()) == [empty] * 3 + [values] + [empty] * 4


def test_an_array_has_every_index_and_deletes_none():
    with Map.create(spec(t.BPF_MAP_TYPE_ARRAY, entries=5)) as m:
        m.update({index: struct.pack("=I", index * index) for index in range(5)})
        assert list(m) == [0, 1, 2, 3, 4]
        assert [int.from_bytes(value, "little") for value in m.values()] == [0, 1, 4, 9, 16]
        assert len(m) == 5
        assert 5 not in m
        with pytest.raises(KeyError):
            m[5]
        with pytest.raises(KernelError, match="indexes go from 0 to 4") as caught:
            m[5] = b"late"
        assert caught.value.errno == errno.E2BIG
        with pytest.raises(KernelError, match="a ARRAY does not offer this"):
            del m[2]
        m.clear()
        assert set(m.values()) == {bytes(4)}


def test_update_flags_reach_the_kernel():
    with Map.create(spec(t.BPF_MAP_TYPE_HASH)) as m:
        m.put(b"key1", b"old!", BPF_NOEXIST)
        with pytest.raises(KernelError) as caught:
            m.put(b"key1", b"new!", BPF_NOEXIST)
        assert caught.value.errno == errno.EEXIST
        m.put(b"key1", b"new!", BPF_EXIST)
        with pytest.raises(KernelError) as caught:
            m.update([(b"key2", b"none")], flags=BPF_EXIST)
        assert caught.value.errno == errno.ENOENT
        assert dict(m.items()) == {b"key1": b"new!"}


def test_a_full_hash_says_so():
    with Map.create(spec(t.BPF_MAP_TYPE_HASH, entries=2, flags=BPF_F_NO_PREALLOC)) as m:
        m[b"key1"] = m[b"key2"] = b"full"
        with pytest.raises(KernelError, match="all 2 entries are taken") as caught:
            m[b"key3"] = b"more"
        assert caught.value.errno == errno.E2BIG


def test_an_lru_hash_forgets_instead_of_refusing():
    with Map.create(spec(t.BPF_MAP_TYPE_LRU_HASH, entries=64)) as m:
        m.update((struct.pack("=I", n), b"same") for n in range(1000))
        assert 0 < len(m) <= 64


def test_pop_takes_a_value_out():
    with Map.create(spec(t.BPF_MAP_TYPE_HASH)) as m:
        m[b"key1"] = b"once"
        assert m.pop(b"key1") == b"once"
        assert m.pop(b"key1", None) is None
        with pytest.raises(KeyError):
            m.pop(b"key1")
        with pytest.raises(NotSupportedError, match="without a key"):
            m.pop()


def test_an_lpm_trie_takes_networks_and_finds_the_longest():
    rule = spec(t.BPF_MAP_TYPE_LPM_TRIE, 8, 4, 16, flags=BPF_F_NO_PREALLOC)
    with Map.create(rule) as m:
        m[ipaddress.ip_network("10.0.0.0/8")] = b"wide"
        m[ipaddress.ip_network("10.1.0.0/16")] = b"near"
        assert m[ipaddress.ip_network("10.1.2.3/32")] == b"near"
        assert m[ipaddress.ip_network("10.200.0.1/32")] == b"wide"
        assert m[ipaddress.ip_address("10.1.2.3")] == b"near"
        assert ipaddress.ip_address("11.0.0.1") not in m
        assert ipaddress.ip_network("11.0.0.1/32") not in m
        assert {key[:4]: value for key, value in m.items()} == {
            struct.pack("=I", 8): b"wide",
            struct.pack("=I", 16): b"near",
        }
        long = struct.pack("=I4x", 40)
        for refused in (
            lambda: m.put(long, b"long"),
            lambda: m.update({long: b"long"}),
            lambda: m.delete([long]),
        ):
            with pytest.raises(KernelError, match=r"EINVAL.*prefix lengths go from 0 to 32"):
                refused()
        del m[ipaddress.ip_network("10.1.0.0/16")]
        assert m[ipaddress.ip_network("10.1.2.3/32")] == b"wide"


@pytest.mark.parametrize(
    ("kind", "order"), [(t.BPF_MAP_TYPE_QUEUE, [0, 1, 2]), (t.BPF_MAP_TYPE_STACK, [2, 1, 0])]
)
def test_queues_and_stacks(kind, order):
    with Map.create(spec(kind, 0, 4, 3)) as m:
        for number in range(3):
            m.push(struct.pack("=I", number))
        with pytest.raises(KernelError, match="all 3 entries are taken"):
            m.push(b"more")
        assert m.peek() == struct.pack("=I", order[0])
        assert [struct.unpack("=I", m.pop())[0] for _ in range(3)] == order
        assert m.pop(default=None) is None
        with pytest.raises(KeyError):
            m.peek()
        with pytest.raises(KernelError):
            list(m)
        for by_key in (lambda: m[0], lambda: m.pop(3), lambda: 1 in m, lambda: m.put(0, b"zero")):
            with pytest.raises(SchemaError, match=r"a (QUEUE|STACK) has no keys: .* pop\(\)"):
                by_key()


def test_a_full_queue_may_drop_its_oldest():
    with Map.create(spec(t.BPF_MAP_TYPE_QUEUE, 0, 4, 2)) as m:
        for value in (b"one.", b"two.", b"tre."):
            m.push(value, BPF_EXIST)
        assert (m.pop(), m.pop()) == (b"two.", b"tre.")


@pytest.mark.needs("bloom_filter")
def test_a_bloom_filter_knows_what_it_was_given():
    with Map.create(spec(t.BPF_MAP_TYPE_BLOOM_FILTER, 0, 8, 1000, map_extra=3)) as m:
        assert m.info.map_extra == 3
        values = [struct.pack("=Q", number * number) for number in range(100)]
        for value in values:
            m.push(value)
        assert all(value in m for value in values)
        strangers = [struct.pack("=Q", number) for number in range(10**6, 10**6 + 1000)]
        assert sum(value in m for value in strangers) < 100
        with pytest.raises(SchemaError, match=r"a BLOOM_FILTER has no keys: .* `value in map`"):
            m[5]


def test_what_has_keys_is_not_pushed_to():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_ARRAY)) as m,
        pytest.raises(NotSupportedError, match=r"'array'.* is for queues, stacks and bloom f"),
    ):
        m.push(1)


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_HASH_OF_MAPS, t.BPF_MAP_TYPE_ARRAY_OF_MAPS])
def test_maps_of_maps_take_a_map_and_give_it_back(kind, btf_fd):
    inner = spec(t.BPF_MAP_TYPE_HASH, 4, 8, 4, key_type_id=U32, value_type_id=U64)
    outer = spec(kind, 4, 4, 3, inner=inner, key_type_id=U32)
    with (
        Map.create(outer, btf=BTF, btf_fd=btf_fd) as m,
        Map.create(inner, btf=BTF, btf_fd=btf_fd) as first,
        Map.create(inner) as untyped,
    ):
        first[1] = 10**12
        untyped[b"\1\0\0\0"] = struct.pack("=Q", 5)
        m[0], m[2] = first, untyped
        with m[0] as found:
            assert found.info.id == first.info.id
            assert found[1] == 10**12
        with m[2] as found:
            assert found[1] == 5  # typed by what the outer map's declaration says
        opened = dict(m.items())
        assert {key: each.info.id for key, each in opened.items()} == {
            0: first.info.id,
            2: untyped.info.id,
        }
        for each in opened.values():
            each.close()
        assert sorted(m) == [0, 2]
        assert len(m) == 2
        del m[0]
        assert list(m) == [2]
        other = Map.create(spec(t.BPF_MAP_TYPE_HASH, 4, 16))
        with other, pytest.raises(KernelError, match=r"EINVAL.*maps of one type, with keys and"):
            m[1] = other


OUTER = [t.BPF_MAP_TYPE_HASH_OF_MAPS, t.BPF_MAP_TYPE_ARRAY_OF_MAPS]
INNER = spec(t.BPF_MAP_TYPE_HASH, 4, 8, 4, key_type_id=U32, value_type_id=U64)


@pytest.fixture(params=OUTER, ids=map_kinds.type_name)
def outer(request, btf_fd) -> Iterator[Map]:
    """Holds two maps that nobody else holds."""
    made = spec(request.param, 4, 4, 3, inner=INNER, key_type_id=U32)
    with Map.create(made, btf=BTF, btf_fd=btf_fd) as m:
        for index in (0, 2):
            with Map.create(INNER, btf=BTF, btf_fd=btf_fd) as inner:
                inner[1] = index
                m[index] = inner
        yield m


def test_a_map_that_only_a_map_of_maps_holds_is_taken_out(outer):
    with outer.pop(2) as found:
        assert found[1] == 2
    assert list(outer) == [0]
    assert outer.pop(2, None) is None
    with pytest.raises(KeyError):
        outer.pop(2)
    with pytest.raises(NotSupportedError, match="without a key"):
        outer.pop()
    ((key, found),) = outer.drain()
    with found:
        assert (key, found[1]) == (0, 0)
    assert not outer
    assert outer.drain() == []


def test_a_map_of_maps_that_is_frozen_keeps_what_it_has(outer):
    outer.freeze()
    with pytest.raises(KernelError) as caught:
        outer.drain()
    assert caught.value.errno == errno.EPERM
    assert sorted(outer) == [0, 2]


def test_a_program_array_takes_programs_and_shows_their_ids():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_PROG_ARRAY)) as m,
        bpf.prog_load(SOCKET_FILTER, RETURN_0, "GPL") as program,
        bpf.prog_load(TRACEPOINT, RETURN_0, "GPL") as other,
    ):
        m[3] = program
        m[5] = program.fileno()
        assert list(m) == [3, 5]
        assert m[3] == m[5] > 0
        assert dict(m.items()) == {3: m[3], 5: m[3]}
        assert m.get(4) is None
        with pytest.raises(KernelError) as caught:
            m[4] = other  # of another type than the first
        assert caught.value.errno == errno.EINVAL
        m.clear()
        assert not m


@pytest.mark.needs("perf_event")
def test_a_perf_event_array_takes_events_and_shows_nothing():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 40, 0)) as m,
        PerfEvent.sampling(frequency=99, cpu=0) as event,
    ):
        assert m.max_entries == cpus.possible()[-1] + 1
        m[0] = event
        with pytest.raises(KernelError, match="PERF_EVENT_ARRAY does not offer this"):
            m[0]
        del m[0]
        with pytest.raises(KeyError):
            del m[0]


def cgroup_directory() -> Descriptor:
    root = next(path for path, kind in proc.mounts() if kind == "cgroup2")
    return Descriptor(os.open(root, os.O_RDONLY | os.O_DIRECTORY))


def test_a_cgroup_array_takes_directories():
    with Map.create(spec(t.BPF_MAP_TYPE_CGROUP_ARRAY)) as m, cgroup_directory() as cgroup:
        m[1] = cgroup
        del m[1]


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    with client, accepted:
        yield client, accepted


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_SOCKMAP, t.BPF_MAP_TYPE_SOCKHASH])
def test_socket_maps_take_sockets_and_show_their_cookies(kind, connection):
    so_cookie = 57
    client, accepted = connection
    with Map.create(spec(kind, 4, 8)) as m:
        keys = [0, 1] if kind == t.BPF_MAP_TYPE_SOCKMAP else [b"key0", b"key1"]
        m[keys[0]], m[keys[1]] = client, accepted.fileno()
        cookie = client.getsockopt(socket.SOL_SOCKET, so_cookie, 8)
        assert m[keys[0]] == int.from_bytes(cookie, "little")
        assert sorted(m) == keys
        del m[keys[0]]
        assert list(m) == [keys[1]]


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_DEVMAP, t.BPF_MAP_TYPE_DEVMAP_HASH])
def test_device_maps_hold_interface_numbers(kind):
    loopback = socket.if_nametoindex("lo")
    with Map.create(spec(kind)) as m:
        key = 2 if kind == t.BPF_MAP_TYPE_DEVMAP else b"key2"
        m[key] = loopback
        assert dict(m.items()) == {key: loopback}


def test_a_cpu_map_holds_queue_sizes():
    with Map.create(spec(t.BPF_MAP_TYPE_CPUMAP, entries=cpus.possible()[-1] + 1)) as m:
        m[0] = 192
        assert m[0] == 192
        assert list(m) == [0]
        del m[0]


def test_a_reuseport_array_takes_sockets_that_share_a_port():
    with Map.create(spec(t.BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, 4, 8)) as m, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        m[2] = sock
        assert list(m) == [2]


def storage(kind: int) -> MapSpec:
    return spec(kind, 4, 16, 0, flags=BPF_F_NO_PREALLOC, key_type_id=U32, value_type_id=VALUE)


def _pidfd() -> Descriptor:
    return Descriptor(os.pidfd_open(os.getpid()))


def _socket() -> Descriptor:
    return Descriptor(socket.socket().detach())


def _file() -> Descriptor:
    return Descriptor(os.memfd_create("file"))


@pytest.mark.parametrize(
    ("kind", "owner"),
    [
        pytest.param(
            *(t.BPF_MAP_TYPE_TASK_STORAGE, _pidfd), marks=pytest.mark.needs("task_storage")
        ),
        (t.BPF_MAP_TYPE_SK_STORAGE, _socket),
        pytest.param(
            *(t.BPF_MAP_TYPE_INODE_STORAGE, _file), marks=pytest.mark.needs("inode_storage")
        ),
        pytest.param(
            *(t.BPF_MAP_TYPE_CGRP_STORAGE, cgroup_directory),
            marks=pytest.mark.needs("cgroup_storage", "cgroup2"),
        ),
    ],
    ids=lambda value: map_kinds.type_name(value) if isinstance(value, int) else "",
)
def test_local_storage_belongs_to_what_the_descriptor_is(kind, owner, btf_fd):
    with Map.create(storage(kind), btf=BTF, btf_fd=btf_fd) as m, owner() as descriptor:
        assert descriptor not in m
        m[descriptor] = (10**10, 3)
        assert (m[descriptor].total, m[descriptor.fileno()].last) == (10**10, 3)
        with pytest.raises(KernelError, match="listing map"):
            list(m)
        del m[descriptor]
        assert descriptor not in m
        for call in (m.__getitem__, m.__delitem__, lambda key: m.put(key, (0, 0))):
            with pytest.raises(KernelError, match=r"EBADF.* no open descriptor"):
                call(-1)


def test_a_stack_trace_map_finds_nothing_before_a_program_ran():
    with Map.create(spec(t.BPF_MAP_TYPE_STACK_TRACE, 4, 127 * 8, 64)) as m:
        assert m.get(17) is None
        assert list(m) == list(m.items()) == []
        with pytest.raises(SchemaError, match="class Numbers: the map has no struct"):
            m.bind(value=Numbers)
        with pytest.raises(SchemaError, match="not -14"):
            m[-14]  # what bpf_get_stackid returns when it fails


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
        with pytest.raises(SchemaError, match="does not say what its records are"):
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
        with pytest.raises(NotSupportedError, match="a HASH has elements"):
            m.read()
        with pytest.raises(NotSupportedError, match="BPF_F_MMAPABLE"):
            m.mmap()


@pytest.mark.needs("user_ring_buffer")
def test_a_user_ring_is_written_to():
    with Map.create(spec(t.BPF_MAP_TYPE_USER_RINGBUF, 0, 0, mmap.PAGESIZE)) as m:
        with pytest.raises(NotSupportedError, match=r"is written to, see `Map.writer\(\)`"):
            m.read(0)
        with pytest.raises(SchemaError, match=r"a USER_RINGBUF has no keys: .* writer\(\)"):
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


CREATED_ONLY = {
    t.BPF_MAP_TYPE_XSKMAP: spec(t.BPF_MAP_TYPE_XSKMAP),
    t.BPF_MAP_TYPE_USER_RINGBUF: spec(t.BPF_MAP_TYPE_USER_RINGBUF, 0, 0, 1),
    t.BPF_MAP_TYPE_CGROUP_STORAGE: spec(t.BPF_MAP_TYPE_CGROUP_STORAGE, 16, 8, 0),
    t.BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE: spec(t.BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE, 16, 8, 0),
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.needs("user_ring_buffer"))
        if kind == t.BPF_MAP_TYPE_USER_RINGBUF
        else kind
        for kind in CREATED_ONLY
    ],
    ids=map_kinds.type_name,
)
def test_types_whose_elements_come_from_elsewhere_are_made(kind):
    with Map.create(CREATED_ONLY[kind]) as m:
        assert (m.type, m.info.type) == (kind, kind)
        assert m.max_entries in (CREATED_ONLY[kind].max_entries, mmap.PAGESIZE)


def test_no_type_is_forgotten_here():
    """STRUCT_OPS maps are made from an object's own struct, and tested with it."""
    text, _, _ = Path(__file__).read_text().partition("def test_no_type_is_forgotten_here")
    tested = {kind for name, kind in bpf_map_type.__members__.items() if f"t.{name}" in text}
    assert set(bpf_map_type) - tested == {t.BPF_MAP_TYPE_UNSPEC, t.BPF_MAP_TYPE_STRUCT_OPS}


def test_a_signal_handler_may_use_the_map_it_interrupts():
    with Map.create(spec(t.BPF_MAP_TYPE_ARRAY, 4, 8)) as m:
        m[0], m[1] = struct.pack("=Q", 100), struct.pack("=Q", 200)
        seen = set()
        before = signal.signal(signal.SIGALRM, lambda *_: seen.add(m[1]))
        try:
            found = set()
            for _ in range(20):
                seen.clear()
                signal.setitimer(signal.ITIMER_REAL, 0.0005)  # once: a slow host would not keep up
                while not seen:
                    found.add(m[0])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert found == {struct.pack("=Q", 100)}
        assert seen == {struct.pack("=Q", 200)}


def test_btf_of_a_map_made_elsewhere_is_read_back(btf_fd):
    with Map.create(typed(t.BPF_MAP_TYPE_HASH), btf=BTF, btf_fd=btf_fd) as m:
        m[9, "nine"] = (9, 9)
        for again in (Map.from_id(m.info.id), Map.from_fd(m.fileno())):
            with again:
                assert isinstance(again.btf, Btf)
                assert again[9, "nine"].total == 9
        assert not m._store.descriptor.closed


def test_closing_twice_is_harmless_and_a_closed_map_refuses():
    m = Map.create(spec(t.BPF_MAP_TYPE_HASH))
    m[b"key1"] = b"here"
    m.close()
    m.close()
    with Map.create(spec(t.BPF_MAP_TYPE_HASH)) as other:  # has the number that m had
        with pytest.raises(ValueError, match="closed"):
            m[b"key1"]
        with pytest.raises(ValueError, match="closed"):
            m.update([(b"key1", b"lost")])
        assert len(other) == 0
    assert "closed" in repr(m)


def test_maps_are_equal_only_to_themselves_and_hashable():
    with Map.create(spec(t.BPF_MAP_TYPE_HASH)) as m, Map.create(spec(t.BPF_MAP_TYPE_HASH)) as n:
        assert m != n
        assert len({m, n, m}) == 2
        assert not m
        m[b"key1"] = b"here"
        assert m


@pytest.mark.parametrize("flags", [-1, 1 << 64, "exist"])
def test_flags_that_no_kernel_has_room_for(flags):
    with Map.create(spec(t.BPF_MAP_TYPE_HASH, 4, 4)) as m:
        for call in (
            lambda: m.put(bytes(4), bytes(4), flags),
            lambda: m.get(bytes(4), flags=flags),
            lambda: m.update({bytes(4): bytes(4)}, flags=flags),
        ):
            with pytest.raises(ValueError, match=f"number of 64 bits, not {flags!r}"):
                call()
        m[bytes(4)] = b"abcd"
        assert dict(m.items()) == {bytes(4): b"abcd"}


def test_a_ring_has_nothing_to_clear():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_RINGBUF, 0, 0, mmap.PAGESIZE)) as ring,
        pytest.raises(KernelError, match=r"listing map .* RINGBUF does not offer this"),
    ):
        ring.clear()


@pytest.mark.parametrize(
    ("kind", "size", "value", "said"),
    [
        (t.BPF_MAP_TYPE_PROG_ARRAY, 4, "program", "EINVAL.*holds programs of one type"),
        (t.BPF_MAP_TYPE_PROG_ARRAY, 4, -1, "EBADF.*no open descriptor"),
        (t.BPF_MAP_TYPE_SOCKMAP, 8, "socket", "connected or listening"),
        (t.BPF_MAP_TYPE_SOCKMAP, 8, "file", "ENOTSOCK.*not of what the map holds"),
        (t.BPF_MAP_TYPE_DEVMAP, 4, 1 << 30, "EINVAL.*interfaces are of this network namespace"),
        (t.BPF_MAP_TYPE_XSKMAP, 4, "socket", "sockets are of AF_XDP"),
        (t.BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, 8, "socket", "EINVAL.*bound, with SO_REUSEPORT"),
    ],
)
def test_what_a_map_does_not_hold_is_refused_with_what_it_holds(kind, size, value, said):
    with (
        Map.create(spec(kind, 4, size)) as m,
        socket.socket() as unconnected,
        open(__file__) as file,
        bpf.prog_load(SOCKET_FILTER, RETURN_0, "GPL") as program,
        bpf.prog_load(TRACEPOINT, RETURN_0, "GPL") as other,
    ):
        values = {"program": other, "socket": unconnected, "file": file}
        if value == "program":
            m[0] = program
        with pytest.raises(KernelError, match=said):
            m[1] = values.get(value, value)


def test_a_socket_map_too_small_for_cookies_says_so(connection):
    with Map.create(spec(t.BPF_MAP_TYPE_SOCKMAP, 4, 4)) as m:
        m[0] = connection[0]
        with pytest.raises(KernelError, match=r"ENOSPC.*its cookie, of 8 bytes.*__u64"):
            m.get(0)
