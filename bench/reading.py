"""Reading maps and ring buffers: against bcc's Python, and bpftool, on the same map in one run.

    python bench/reading.py [--entries 1000000] [--events 2000000] [--rounds 3]

bcc's own classes (Debian's python3-bpfcc) read the map and the ring that purebpf made, so that its
compiler is not needed. Rounds are interleaved, medians compared. Figures are CPU seconds of the
reader, kernel included: the machines that run this are busy with other things.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import results
from peers import here
from results import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append("/usr/lib/python3/dist-packages")

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.types.parse import Btf
from purebpf.loader.maps.map import Map
from purebpf.loader.maps.map_batch import Shape, chunks
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.spec import MapSpec
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.map_element import Elements
from tests.kernel.producers import Producer, ring_producer
from tests.support.builders.btf_builder import BtfBuilder

try:
    from bcc import libbcc, table
except ImportError:
    table = libbcc = None

BATCHES, BPFTOOL = "BPF_MAP_LOOKUP_BATCH alone", "bpftool -j map dump"
ITEMS, TO_NUMPY, AT_REST = "items()", "to_numpy(), summed", "to_numpy(at_rest=True), summed"
DRAIN, DRAIN_NUMPY = "drain()", "drain_numpy()"
BCC_ITEMS, BCC_RING = "bcc items()", "bcc ring_buffer_consume()"
BCC_BATCH = "bcc items_lookup_batch()"


class Types:
    """A key, a value and an event, for both sides."""

    def __init__(self) -> None:
        b = BtfBuilder()
        u32, u64 = b.int("unsigned int", 4), b.int("unsigned long", 8)
        self.key = b.struct("key", [("pid", u32), ("cpu", u32)])
        self.value = b.struct(
            "value",
            [("count", u64), ("total_ns", u64), ("last_ns", u64), ("flags", u32), ("cpu", u32)],
        )
        self.event = b.struct("event", [("number", u64)])
        self.btf: Btf = b.btf()


class Key(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint32), ("cpu", ctypes.c_uint32))


class Value(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint64),
        ("total_ns", ctypes.c_uint64),
        ("last_ns", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
    )


class Event(ctypes.Structure):
    _fields_ = (("number", ctypes.c_uint64),)


def cpu_s(work: Callable[[], object], who: int = resource.RUSAGE_SELF) -> float:
    """CPU seconds of this process, or of its children."""
    before = resource.getrusage(who)
    work()
    after = resource.getrusage(who)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bench_map(types: Types, entries: int, rounds: int) -> dict[str, float]:
    """CPU seconds for every entry of a hash with struct values, by the side."""
    kind = bpf_map_type.BPF_MAP_TYPE_HASH
    spec = MapSpec("bench", kind, 8, 32, entries, 0, types.key, types.value)
    with Map.create(spec, btf=types.btf) as m:
        m.update(
            (struct.pack("=II", i, i & 7), struct.pack("=QQQII", i, 2 * i, 3 * i, 1, i & 7))
            for i in range(entries)
        )
        expected = entries * (entries - 1)

        def items() -> None:
            assert sum(value.total_ns for _, value in m.items()) == expected

        def plain() -> None:
            assert sum(1 for _ in m.items()) == entries

        def arrays() -> None:
            assert m.to_numpy()[1]["total_ns"].sum() == expected

        def at_rest() -> None:
            assert m.to_numpy(at_rest=True)[1]["total_ns"].sum() == expected

        def batches() -> None:
            with Descriptor(os.dup(m.fileno())) as descriptor:
                pairs = chunks(Elements(descriptor), Shape(8, 32, entries))
                assert sum(len(keys) // 8 for keys, _ in pairs) == entries

        sides: dict[str, tuple[Callable[[], None], int]] = {
            BATCHES: (batches, resource.RUSAGE_SELF),
            ITEMS: (plain, resource.RUSAGE_SELF),
            f"{ITEMS}, a field of each": (items, resource.RUSAGE_SELF),
            TO_NUMPY: (arrays, resource.RUSAGE_SELF),
            AT_REST: (at_rest, resource.RUSAGE_SELF),
        }
        if here("bpftool"):
            command = ["bpftool", "-j", "map", "dump", "id", str(m.info.id)]
            sides[BPFTOOL] = (
                lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True) and None,
                resource.RUSAGE_CHILDREN,
            )
        if table is not None:
            theirs = bcc_hash(m.fileno(), entries)
            sides[BCC_ITEMS] = (
                lambda: check(sum(1 for _ in theirs.items()), entries),
                resource.RUSAGE_SELF,
            )
            sides[BCC_BATCH] = (
                lambda: check(sum(1 for _ in theirs.items_lookup_batch()), entries),
                resource.RUSAGE_SELF,
            )
        return taken(sides, rounds)


def check(actual: int, expected: int) -> None:
    assert actual == expected, (actual, expected)


def bcc_hash(fd: int, entries: int) -> object:
    """bcc's HashTable over a map that bcc did not make."""
    made = table.HashTable.__new__(table.HashTable)
    made.__dict__.update(
        map_fd=fd, Key=Key, Leaf=Value, max_entries=entries, flags=0, ttype=1, _cbs={}, _name="b"
    )
    return made


def bench_ring(types: Types, events: int, rounds: int) -> tuple[dict[str, float], int]:
    """CPU seconds for typed events through a ring of 64 MiB, filled before each reading, by the
    side; and how many events a full ring lost without counting them as refused.
    """
    with ring_producer(1 << 26) as producer:
        producer.source.btf, producer.source.value_type_id = types.btf, types.event
        with RingBuffer(producer.source) as ring:
            one_by_one = {
                DRAIN: lambda: sum(1 for _ in ring.drain()),
                f"{DRAIN}, a field of each": lambda: last_number(ring),
                DRAIN_NUMPY: lambda: len(ring.drain_numpy()["number"]),
            }
            if table is not None:
                one_by_one[BCC_RING] = bcc_ring(producer.source.fileno())
            sides = {
                name: (reading(events, read), resource.RUSAGE_SELF)
                for name, read in one_by_one.items()
            }
            times = taken(sides, rounds, prepare=lambda: producer.send(events))
            return times, uncounted(producer, ring)


def last_number(ring: RingBuffer) -> int:
    return sum(1 for event in ring.drain() if event.number >= 0)


def reading(events: int, read: Callable[[], int]) -> Callable[[], None]:
    return lambda: check(read(), events)


def bcc_ring(fd: int) -> Callable[[], int]:
    """bcc's RingBuf over a ring that bcc did not make: its callback, cast and consume."""
    seen = [0]
    ring = table.RingBuf.__new__(table.RingBuf)

    def open_ring(map_fd: int, function: object, ctx: object) -> None:
        ring.manager = libbcc.lib.bpf_new_ringbuf(map_fd, function, ctx)

    ring.__dict__.update(
        bpf=SimpleNamespace(_open_ring_buffer=open_ring), map_fd=fd, _cbs={}, _event_class=Event
    )

    def callback(_ctx: object, data: object, _size: int) -> None:
        if ring.event(data).number >= 0:
            seen[0] += 1

    ring.open_ring_buffer(callback)

    def consume() -> int:
        seen[0] = 0
        libbcc.lib.bpf_consume_ringbuf(ring.manager)
        return seen[0]

    return consume


def uncounted(producer: Producer, ring: RingBuffer) -> int:
    """A producer that is faster than its reader: what it sent, less what came or was refused."""
    sent, refused, received = producer.sent, producer.refused, 0
    for _ in range(5):
        producer.send(6_000_000)  # the ring has room for 4,194,304
        received += len(ring.drain_numpy())
    sent, refused = producer.sent - sent, producer.refused - refused
    print(f"{sent:,} sent to a full ring, {received:,} received, {refused:,} refused")
    return abs(sent - received - refused)


def taken(
    sides: dict[str, tuple[Callable[[], None], int]],
    rounds: int,
    prepare: Callable[[], None] | None = None,
) -> dict[str, float]:
    """The median CPU seconds of each side, which take turns."""
    times_by_side: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (work, who) in sides.items():
            if prepare is not None:
                prepare()
            times_by_side[name].append(cpu_s(work, who))
    return {name: statistics.median(times) for name, times in times_by_side.items()}


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Both benches."""
    if table is None:
        print("left out, not installed: python3-bpfcc", file=sys.stderr)
    types = Types()
    entries, events = options.entries, options.events
    figures = bench_map(types, entries, options.rounds)
    what = f"{entries:,} entries by"
    yield Figure(f"{what} {BATCHES}", figures[BATCHES], "s of CPU")
    for peer, limit in ((BCC_ITEMS, 0.1), (BCC_BATCH, None), (BPFTOOL, 1.0)):
        yield Figure(f"{what} {ITEMS}", figures[ITEMS], "s of CPU", peer, figures.get(peer), limit)
    for name, limit in ((TO_NUMPY, None), (AT_REST, 0.1)):
        yield Figure(f"{what} {name}", figures[name], "s of CPU", ITEMS, figures[ITEMS], limit)
    figures, lost = bench_ring(types, events, options.rounds)
    yield Figure(f"an event by {DRAIN}", figures[DRAIN] / events * 1e9, "ns of CPU", limit=1000)
    yield Figure(
        f"an event by {DRAIN_NUMPY}", figures[DRAIN_NUMPY] / events * 1e9, "ns of CPU", limit=200
    )
    what = f"{events:,} events by {DRAIN}, a field of each"
    yield Figure(
        what,
        figures[f"{DRAIN}, a field of each"],
        "s of CPU",
        BCC_RING,
        figures.get(BCC_RING),
        1 / 3,
    )
    yield Figure("neither received nor counted as lost, of a full ring", lost, "events", limit=0)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=3)
    options.add_argument("--entries", type=int, default=1_000_000)
    options.add_argument("--events", type=int, default=2_000_000)
    sys.exit(results.run(measure, options.parse_args()))
