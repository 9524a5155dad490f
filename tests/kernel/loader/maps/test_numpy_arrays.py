"""Maps and rings as numpy arrays: the same values as the readers that make Python objects."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.columns import dtype_of
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError, NotSupportedError, SchemaError
from purebpf.loader.maps.map import Map
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.spec import MapSpec
from purebpf.syscall.backend import replaced
from tests.kernel.producers import Source, ring_producer
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.host.backends import Interposer

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.needs("bpf")

HASH = bpf_map_type.BPF_MAP_TYPE_HASH
PERCPU = bpf_map_type.BPF_MAP_TYPE_PERCPU_HASH
ARRAY = bpf_map_type.BPF_MAP_TYPE_ARRAY


class Types:
    def __init__(self):
        b = BtfBuilder()
        u32, u64 = b.int("unsigned int", 4), b.int("unsigned long", 8)
        char = b.int("char", 1, signed=True)
        self.number = u32
        self.key = b.struct("key", [("pid", u32), ("cpu", u32)])
        self.value = b.struct(
            "value",
            [
                ("count", u64),
                ("name", b.array(char, 6)),
                ("pair", b.array(u32, 2)),
                ("x", self.key),
            ],
        )
        self.odd = b.struct("odd", [("a", u32), ("b", u32), ("c", u32)])
        self.event = b.struct("event", [("number", u64)])
        self.btf = b.btf()


@pytest.fixture(scope="module")
def t() -> Types:
    return Types()


def test_a_hash_of_structs(t):
    spec = MapSpec("m", HASH, 8, t.btf.sizeof(t.value), 5000, 0, t.key, t.value)
    with Map.create(spec, btf=t.btf) as m:
        m.update(((i, 7), (i * i, f"n{i}", (i, 1), (i, 2))) for i in range(4099))
        keys, values = m.to_numpy()
        rows = {
            (int(key["pid"]), int(key["cpu"])): (
                int(value["count"]),
                value["name"].decode(),
                tuple(map(int, value["pair"])),
                tuple(map(int, value["x"].tolist())),
            )
            for key, value in zip(keys, values, strict=True)
        }
        assert rows == {tuple(key): tuple(value) for key, value in m.items()}
        assert len(rows) == 4099


@pytest.mark.needs("syscall_programs")
@pytest.mark.parametrize("kind", [HASH, bpf_map_type.BPF_MAP_TYPE_LRU_HASH])
def test_a_hash_at_rest_is_copied_by_a_program(t, kind):
    spec = MapSpec("m", kind, 8, t.btf.sizeof(t.odd), 9001, 0, t.key, t.odd)
    with Map.create(spec, btf=t.btf) as m:
        m.update(((i, 7), (i, i + 1, i + 2)) for i in range(4099))
        substitute = Interposer()
        with replaced(substitute):
            keys, values = m.to_numpy(at_rest=True)
        assert "BPF_MAP_LOOKUP_BATCH" not in substitute.commands
        expected = dict(m.items())
    # The arrays need neither the map nor a descriptor.
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {
        tuple(key): tuple(value) for key, value in expected.items()
    }
    values["a"] += 1
    mapped = Path("/proc/self/maps")
    assert "bpf-map" in mapped.read_text()
    del keys, values
    assert "bpf-map" not in mapped.read_text()


@pytest.mark.needs("syscall_programs")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 13])
def test_keys_and_values_at_rest_may_have_any_size(size):
    with Map.create(MapSpec("m", HASH, size, size, 11)) as m:
        for i in range(11):
            m[bytes([i] * size)] = bytes([i + 1] * size)
        keys, values = m.to_numpy(at_rest=True)
        rows = dict(zip((k.tobytes() for k in keys), (v.tobytes() for v in values), strict=True))
        assert rows == dict(m.items())


@pytest.mark.parametrize("command", ["BPF_PROG_LOAD", "BPF_MAP_CREATE", "BPF_PROG_TEST_RUN"])
def test_without_that_program_a_map_at_rest_is_read_as_ever(t, command):
    with Map.create(MapSpec("m", HASH, 8, 8, 11, 0, t.key, t.key), btf=t.btf) as m:
        m.update(((i, 1), (i, 2)) for i in range(7))
        with replaced(Interposer(lambda call: errno.EPERM if call.command == command else None)):
            keys, values = m.to_numpy(at_rest=True)
        assert sorted(keys["pid"].tolist()) == sorted(values["pid"].tolist()) == list(range(7))


def test_values_of_each_cpu_are_columns(t):
    spec = MapSpec("m", PERCPU, 8, t.btf.sizeof(t.odd), 50, 0, t.key, t.odd)
    with Map.create(spec, btf=t.btf) as m:
        cpus = len(m._store.value.decode(bytes(m._store.shape.value_size)))
        m[1, 2] = [(cpu, 2, 3) for cpu in range(cpus)]
        keys, values = m.to_numpy()
        assert keys.tolist() == [(1, 2)]
        assert values.shape == (1, cpus)
        assert values["a"].tolist() == [list(range(cpus))]
        assert values["c"].tolist() == [[3] * cpus]


def test_arrays_go_back_in(t):
    spec = MapSpec("m", HASH, 8, t.btf.sizeof(t.value), 5000, 0, t.key, t.value)
    with Map.create(spec, btf=t.btf) as m, Map.create(spec, btf=t.btf) as other:
        m.update({(i, 7): (i * i, f"n{i}", (i, 1), (i, 2)) for i in range(4099)})
        other.from_numpy(*m.to_numpy())
        assert dict(other.items()) == dict(m.items())
        keys, values = m.to_numpy()
        other.clear()
        other.batches = other._store.batches = False  # as before Linux 5.6
        other.from_numpy(keys[::2], values[::2])  # not contiguous
        assert len(other) == 2050
        assert all(m[key] == value for key, value in other.items())


def test_values_of_each_cpu_go_back_in(t):
    spec = MapSpec("m", PERCPU, 8, t.btf.sizeof(t.odd), 50, 0, t.key, t.odd)
    with Map.create(spec, btf=t.btf) as m:
        cpus = len(m._store.value.decode(bytes(m._store.shape.value_size)))
        m.update({(i, 2): [(cpu, i, 3) for cpu in range(cpus)] for i in range(20)})
        before = dict(m.items())
        keys, values = m.to_numpy()
        m.clear()
        m.from_numpy(keys, values)
        assert dict(m.items()) == before
        with pytest.raises(SchemaError, match=r"values have shape \(20,\), not \(20, "):
            m.from_numpy(keys, values[:, 0])


def test_numbers_of_other_types_are_converted_where_they_fit(t):
    with Map.create(MapSpec("m", HASH, 4, 4, 50, 0, t.number, t.number), btf=t.btf) as m:
        m.from_numpy(np.arange(9), [n * n for n in range(9)])
        assert dict(m.items()) == {n: n * n for n in range(9)}
        for keys, values, problem in (
            ([-1], [1], "keys of dtype int64 do not fit into uint32"),
            ([1], [0.5], "values of dtype float64 do not fit into uint32"),
            (["x"], [1], "keys of dtype <U1 do not fit into uint32"),
            ([1, 2], [1], r"values have shape \(1,\), not \(2,\)"),
            (np.zeros(1, "u4,u4"), [1], "keys of dtype .*f0.* not uint32"),
        ):
            with pytest.raises(SchemaError, match=f"map 'm': {problem}"):
                m.from_numpy(keys, values)
        assert len(m) == 9


def test_a_map_without_types(t):
    with Map.create(MapSpec("m", ARRAY, 4, 3, 5)) as m:
        m[2] = b"abc"
        keys, values = m.to_numpy()
        assert keys.tolist() == [0, 1, 2, 3, 4]
        assert values[2].tobytes() == b"abc"


def test_without_numpy_the_error_says_so(t, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    missing = pytest.raises(NotSupportedError, match="numpy is not installed")
    with Map.create(MapSpec("m", ARRAY, 4, 4, 5)) as m, missing:
        m.to_numpy()


def typed(producer, btf: Btf | None, type_id: int) -> Source:
    producer.source.btf, producer.source.value_type_id = btf, type_id
    return producer.source


def test_a_ring_as_an_array(t):
    with ring_producer(1 << 16) as producer:
        source = typed(producer, t.btf, t.event)
        with RingBuffer(source) as ring:
            assert len(ring.drain_numpy()) == 0
            producer.send(101)
            first = next(ring.drain()).number
            events = ring.drain_numpy()
            assert events["number"].tolist() == list(range(first + 1, first + 101))
            producer.send(100_003)  # far more than fit
            events = ring.drain_numpy()
            assert len(events) == 101 + 100_003 - producer.refused - 101
            assert len(ring.drain_numpy()) == 0


def test_records_of_unknown_or_wrong_type(t):
    with ring_producer(1 << 14) as producer:
        source = typed(producer, t.btf, t.event)
        untyped = pytest.raises(SchemaError, match="its BTF does not have type")
        with RingBuffer(source, bytes) as ring, untyped:
            ring.drain_numpy()
        with RingBuffer(typed(producer, t.btf, t.value)) as ring:
            producer.send(1)
            with pytest.raises(FormatError, match="its type has"):
                ring.drain_numpy()


def test_bit_fields_and_unions_have_columns():
    b = BtfBuilder()
    u32, u8 = b.int("unsigned int", 4), b.int("unsigned char", 1)
    either = b.union("", [("word", u32), ("bytes", b.array(u8, 4))])
    sample = b.struct(
        "sample", [("low", u32, 0, 3), ("high", u32, 3, 29), ("", either, 32)], size=8
    )
    kind = np.dtype(dtype_of(b.btf(), sample))
    assert kind.names == ("word", "bytes", "low_high")
    row = np.frombuffer(struct.pack("<II", 5 | 77 << 3, 0x04030201), kind)[0]
    assert (row["low_high"], row["word"], row["bytes"].tolist()) == (
        5 | 77 << 3,
        0x04030201,
        [1, 2, 3, 4],
    )


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize(
    ("field", "column", "kind"),
    [
        (("s32", 0, 4), "x_bits", "u1"),
        (("s32", 0, 12), "x_bits", "u2"),
        (("u32", 4, 4), "x_bits", "u1"),
        (("u32", 4, 8), "x_bits", "u2"),
        (("u32", 8, 8), "x", "u1"),
        (("s32", 16, 16), "x", "i2"),
        (("u32", 0, 32), "x", "u4"),
        (("u32", 0, 24), "x_bits", "V3"),
        (("bool", 0, 1), "x_bits", "u1"),
        (("color", 8, 8), "x", "i1"),
    ],
)
def test_a_column_has_the_name_of_one_bit_field_where_it_is_its_value(order, field, column, kind):
    b = BtfBuilder(order)
    types = {
        "u32": b.int("unsigned int", 4),
        "s32": b.int("int", 4, signed=True),
        "bool": b.int("_Bool", 1, boolean=True),
        "color": b.enum("color", {"RED": 0, "NONE": -1}),
    }
    name, at, width = field
    sample = b.struct("sample", [("x", types[name], at, width)], size=4)
    found = np.dtype(dtype_of(b.btf(), sample))
    assert found.names == (column,)
    assert found[column] == np.dtype(kind).newbyteorder(order)
    for number in (1, 0) if name == "bool" else (-1, -5) if found[column].kind == "i" else (1, 5):
        (row,) = np.frombuffer(codec(b.btf(), sample).encode((number,)), found)
        assert column != "x" or row["x"] == number


def test_a_bit_field_of_the_old_encoding_is_one():
    b = BtfBuilder()
    sample = b.struct("sample", [("x", b.int("int", 4, signed=True, bits=4, offset=4))], size=4)
    assert np.dtype(dtype_of(b.btf(), sample)).names == ("x_bits",)


def test_bit_fields_do_not_take_the_name_of_a_field():
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    inner = b.struct("", [("a", u32, 0, 4), ("b", u32, 4, 4)], size=4)
    sample = b.struct("sample", [("", inner, 0), ("a_b", u32, 32)], size=8)
    row = np.frombuffer(struct.pack("<II", 0x21, 7), np.dtype(dtype_of(b.btf(), sample)))
    assert {name: int(row[name][0]) for name in row.dtype.names} == {"a_b": 7, "a_b_bits": 0x21}


def test_bit_fields_are_taken_apart_in_one_line():
    """As docs/library.md has it."""
    b = BtfBuilder()
    s32, u32 = b.int("int", 4, signed=True), b.int("unsigned int", 4)
    sample = b.struct("sample", [("delta", s32, 0, 4), ("size", u32, 4, 12)], size=4)
    made = codec(b.btf(), sample)
    values = np.frombuffer(made.encode((-8, 4000)) + made.encode((7, 1)), dtype_of(b.btf(), sample))
    assert (values["delta_size"] >> 4 & 0xFFF).tolist() == [4000, 1]
    assert (values["delta_size"].astype("i8") << 60 >> 60).tolist() == [-8, 7]
