"""Every type of map that this kernel has: what goes in comes out."""

from __future__ import annotations

import errno
import ipaddress
import mmap
import signal
import struct
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest

from purebpf.abi.bpf import BPF_EXIST, BPF_F_NO_PREALLOC, BPF_NOEXIST, bpf_map_type
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.btf.types.parse import Btf
from purebpf.errors import KernelError, NotSupportedError, SchemaError
from purebpf.loader.host import cpus
from purebpf.loader.maps import map_traits
from purebpf.loader.maps.map import Map
from tests.kernel.map_specs import BTF, VALUE, spec, typed
from tests.kernel.producers import Numbers
from tests.support.builders.btf_builder import BtfBuilder

pytestmark = pytest.mark.needs("bpf")

HASHES = [t.BPF_MAP_TYPE_HASH, t.BPF_MAP_TYPE_LRU_HASH]
PER_CPU_HASHES = [t.BPF_MAP_TYPE_PERCPU_HASH, t.BPF_MAP_TYPE_LRU_PERCPU_HASH]


@pytest.mark.parametrize("kind", HASHES, ids=map_traits.type_name)
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


@pytest.mark.parametrize("kind", HASHES, ids=map_traits.type_name)
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


@pytest.mark.parametrize("kind", PER_CPU_HASHES, ids=map_traits.type_name)
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
        with pytest.raises(KernelError, match="indexes are 0 to 4") as caught:
            m[5] = b"late"
        assert caught.value.errno == errno.E2BIG
        with pytest.raises(KernelError, match="a ARRAY does not support this"):
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
        with pytest.raises(
            KernelError, match="the map is full: all 2 entries are in use"
        ) as caught:
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
        m.bind(key=ipaddress.IPv4Network)
        assert sorted(m) == [*map(ipaddress.ip_network, ("10.0.0.0/8", "10.1.0.0/16"))]
        m.bind(key=str)
        assert dict(m.items()) == {"10.0.0.0/8": b"wide", "10.1.0.0/16": b"near"}
        m["10.2.0.0/16"] = b"more"
        assert (m["10.2.9.9"], m.pop("10.2.0.0/16")) == (b"more", b"more")
        long = struct.pack("=I4x", 40)
        for refused in (
            lambda: m.put(long, b"long"),
            lambda: m.update({long: b"long"}),
            lambda: m.delete([long]),
        ):
            with pytest.raises(KernelError, match=r"EINVAL.*prefix lengths are 0 to 32"):
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
        with pytest.raises(KernelError, match="the map is full: all 3 entries are in use"):
            m.push(b"more")
        assert m.peek() == struct.pack("=I", order[0])
        assert [struct.unpack("=I", m.pop())[0] for _ in range(3)] == order
        assert m.pop(default=None) is None
        with pytest.raises(KeyError):
            m.peek()
        with pytest.raises(KernelError):
            list(m)
        for by_key in (lambda: m[0], lambda: m.pop(3), lambda: 1 in m, lambda: m.put(0, b"zero")):
            with pytest.raises(
                SchemaError, match=r"a (QUEUE|STACK) does not have keys: .* pop\(\)"
            ):
                by_key()


def test_bytes_of_another_length_are_called_that():
    queue = spec(t.BPF_MAP_TYPE_QUEUE, 0, 16, 3, value_type_id=VALUE)
    problem = r"map 'queue': value: struct value: b'abc' has 3 bytes, not 16"
    with Map.create(queue, btf=BTF) as m, pytest.raises(SchemaError, match=problem):
        m.push(b"abc")


def test_what_does_not_fit_is_named_with_its_map():
    with Map.create(typed(t.BPF_MAP_TYPE_HASH), btf=BTF) as m:
        value = r"map 'hash': value: struct value\.total: .* -1 is out of range"
        key = r"map 'hash': key: struct key: does not have a field 'pdi'; it has pid, comm"
        for write in (
            lambda: m.put((1, "a"), (-1, 0)),
            lambda: m.update({(1, "a"): (1, 1), (1, "b"): (-1, 0)}),
            lambda: m.update([((1, "b"), (-1, 0))], flags=BPF_NOEXIST),
        ):
            with pytest.raises(SchemaError, match=value):
                write()
        for ask in (
            lambda: m[{"pdi": 1}],
            lambda: m.get({"pdi": 1}),
            lambda: {"pdi": 1} in m,
            lambda: m.put({"pdi": 1}, (1, 1)),
            lambda: m.delete([{"pdi": 1}]),
            lambda: m.pop({"pdi": 1}),
            lambda: m.update([({"pdi": 1}, (1, 1))]),
        ):
            with pytest.raises(SchemaError, match=key):
                ask()
        assert len(m) == 0


def test_pairs_of_any_kind_are_stored():
    pairs = [[(1, "a"), (1, 1)], ((2, "b"), {"total": 2, "last": 2}), iter(((3, "c"), (3, 3)))]
    with Map.create(typed(t.BPF_MAP_TYPE_HASH), btf=BTF) as m:
        m.update(pairs)
        assert sorted(value.total for value in m.values()) == [1, 2, 3]
        with pytest.raises(ValueError, match="zip"):
            m.update([((4, "d"), (4, 4)), ((5, "e"),)])
        assert len(m) == 3


def test_update_can_refuse_keys_that_are_there():
    with Map.create(typed(t.BPF_MAP_TYPE_HASH), btf=BTF) as m:
        m.update({(1, "a"): (1, 1), (2, "b"): (2, 2)}, noexist=True)
        with pytest.raises(KernelError, match="EEXIST"):
            m.update({(2, "b"): (3, 3)}, noexist=True)
        assert m[2, "b"].total == 2


def test_a_map_that_was_forgotten_is_named():
    held = [Map.create(spec(t.BPF_MAP_TYPE_ARRAY))]
    with pytest.warns(ResourceWarning, match=r"unclosed map 'array' \(Descriptor\(\d+\)\)"):
        held.clear()


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
        with pytest.raises(
            SchemaError, match=r"a BLOOM_FILTER does not have keys: .* `value in map`"
        ):
            m[5]
        with pytest.raises(NotSupportedError, match="ask it with: value in map"):
            m.peek(43)


def test_what_has_keys_is_not_pushed_to():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_ARRAY)) as m,
        pytest.raises(NotSupportedError, match=r"'array'.* needs a queue, stack or bloom f"),
    ):
        m.push(1)


def test_a_stack_trace_map_finds_nothing_before_a_program_ran():
    with Map.create(spec(t.BPF_MAP_TYPE_STACK_TRACE, 4, 127 * 8, 64)) as m:
        assert m.get(17) is None
        assert list(m) == list(m.items()) == []
        with pytest.raises(SchemaError, match="Numbers: the map's BTF does not have a struct"):
            m.bind(value=Numbers)
        with pytest.raises(SchemaError, match="not -14"):
            m[-14]  # what bpf_get_stackid returns when it fails


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
    ids=map_traits.type_name,
)
def test_types_without_elements_of_their_own_are_created(kind):
    with Map.create(CREATED_ONLY[kind]) as m:
        assert (m.type, m.info.type) == (kind, kind)
        assert m.max_entries in (CREATED_ONLY[kind].max_entries, mmap.PAGESIZE)


def test_no_type_is_forgotten_here():
    """STRUCT_OPS maps are made from an object's own struct, and tested with it."""
    files = [Path(__file__).with_name(f"test_map_{name}.py") for name in ("references", "memory")]
    text, _, _ = Path(__file__).read_text().partition("def test_no_type_is_forgotten_here")
    text += "".join(file.read_text() for file in files)
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
            with pytest.raises(ValueError, match=f"fit in 64 bits, not {flags!r}"):
                call()
        m[bytes(4)] = b"abcd"
        assert dict(m.items()) == {bytes(4): b"abcd"}


def test_a_ring_has_nothing_to_clear():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_RINGBUF, 0, 0, mmap.PAGESIZE)) as ring,
        pytest.raises(KernelError, match=r"listing map .* a ring buffer has records"),
    ):
        ring.clear()


def test_char_arrays_of_keys_and_values_are_bytes_on_request():
    class Owner(NamedTuple):
        uid: Annotated[int, "u32"]
        name: Annotated[bytes, 12]

    b = BtfBuilder()
    u32, char = b.int("unsigned int", 4), b.int("char", 1)
    owner = b.struct("owner", [("uid", u32), ("name", b.array(char, 12))])
    comm = b.array(char, 16)
    declared = spec(t.BPF_MAP_TYPE_HASH, 16, 16, 8)._replace(key_type_id=comm, value_type_id=owner)
    with Map.create(declared, btf=b.btf()) as m:
        m["sh"] = (7, "ann")
        assert dict(m.items()) == {"sh": (7, "ann")}
        m.bind(text=False)
        assert dict(m.items()) == {b"sh" + bytes(14): (7, b"ann" + bytes(9))}
        m[b"\xff\0x"] = {"uid": 8, "name": b"b\0c"}
        assert m[b"\xff\0x" + bytes(13)].name == b"b\0c" + bytes(9)
        assert m["sh"].uid == 7
        with pytest.raises(SchemaError, match="takes 13 bytes, but there are 12"):
            m["sh"] = (7, bytes(13))
        m.bind(value=Owner)
        assert type(m["sh"]) is Owner
        with pytest.raises(SchemaError, match="does not mirror struct owner"):
            m.bind(text=True)
        assert type(m["sh"]) is Owner
