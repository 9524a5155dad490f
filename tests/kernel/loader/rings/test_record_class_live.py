"""Maps and rings read as instances of classes that mirror their structs."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import pytest

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import SchemaError
from purebpf.loader.maps.map import Map
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.spec import MapSpec
from tests.kernel.producers import ring_producer
from tests.support.builders.btf_builder import BtfBuilder

pytestmark = pytest.mark.needs("bpf")


class Key(NamedTuple):
    pid: Annotated[int, "u32"]
    cpu: Annotated[int, "u32"]


class Event(NamedTuple):
    number: Annotated[int, "u64"]


class Wrong(NamedTuple):
    number: Annotated[int, "u32"]


class Types:
    def __init__(self):
        b = BtfBuilder()
        u32, u64 = b.int("unsigned int", 4), b.int("unsigned long", 8)
        self.key = b.struct("key", [("pid", u32), ("cpu", u32)])
        self.event = b.struct("event", [("number", u64)])
        self.btf = b.btf()


@pytest.mark.parametrize("kind", ["HASH", "PERCPU_HASH"])
def test_a_map_reads_and_writes_record_classes(kind):
    t = Types()
    number = bpf_map_type[f"BPF_MAP_TYPE_{kind}"]
    spec = MapSpec("m", number, 8, 8, 10, 0, t.key, t.event)
    with Map.create(spec, btf=t.btf) as m:
        assert m.bind(key=Key, value=Event) is m
        one = m._store.value.decode(bytes(m._store.shape.value_size))
        value = Event(5) if kind == "HASH" else (Event(5),) * len(one)
        m[Key(1, 2)] = value
        assert dict(m.items()) == {Key(1, 2): value}
        (key,) = m
        assert isinstance(key, Key)
        assert m[Key(1, 2)] == value
        with pytest.raises(SchemaError, match="does not mirror struct key"):
            m.bind(key=Event)


def test_a_ring_yields_record_classes():
    t = Types()
    with ring_producer(1 << 14) as producer:
        producer.source.btf = t.btf  # the class's name finds the struct
        producer.send(3)
        with RingBuffer(producer.source, Event) as ring:
            events = list(ring.drain())
            assert [type(each) for each in events] == [Event] * 3
            assert [each.number - events[0].number for each in events] == [0, 1, 2]
        producer.source.value_type_id = t.event
        with pytest.raises(SchemaError, match="class Wrong"):
            RingBuffer(producer.source, Wrong)
