"""A ring buffer in plain memory: what is decoded by the run is what each record holds."""

from __future__ import annotations

import itertools
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.record_class import bind
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError
from purebpf.loader.rings import ring_buffer
from purebpf.loader.rings.record_types import RecordCodec
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.wire.ring_buffer import BUSY, DISCARD
from tests.support.builders.btf_builder import BtfBuilder

SIZE = mmap.PAGESIZE
SHORT = "shorter than its type"


class Event(NamedTuple):
    pid: Annotated[int, "u32"]
    comm: Annotated[str, 8]


def types() -> dict[str, RecordCodec]:
    b = BtfBuilder()
    u32, char = b.int("unsigned int", 4), b.int("char", 1, signed=True)
    event = b.struct("event", [("pid", u32), ("comm", b.array(char, 8))])
    union = b.struct("either", [("", b.union("", [("number", u32), ("text", b.array(char, 4))]))])
    flexible = b.struct("flexible", [("pid", u32), ("rest", b.array(char, 0))])
    btf = b.btf()
    found: dict[str, Any] = {
        name: codec(btf, type_id)
        for name, type_id in {
            "struct": event,
            "number": u32,
            "union": union,
            "tail": flexible,
        }.items()
    }
    return {**found, "class": bind(codec(btf, event), Event)}


TYPES = types()


class Source:
    """A map with a descriptor that is a file with the pages of a ring."""

    name, max_entries, value_type_id = "events", SIZE, 0
    btf: Btf | None = None
    text = True

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def wakes(self, reader: object) -> None:
        """It is not closed before its readers."""


class Sent(NamedTuple):
    """A record and what became of it."""

    data: bytes
    flag: int


def pages(consumer: int, records: list[Sent]) -> tuple[bytes, int]:
    """All pages of the ring, its data twice; and the producer's position."""
    once, position = bytearray(b"\xee" * SIZE), consumer
    for record in records:
        block = struct.pack("=II", len(record.data) | record.flag, 0) + record.data
        for place, byte in enumerate(block.ljust(-(-len(block) // 8) * 8, b"\xdd")):
            once[(position + place) % SIZE] = byte
        position += -(-len(block) // 8) * 8
    first, second = (struct.pack("=Q", each).ljust(SIZE, b"\0") for each in (consumer, position))
    return first + second + bytes(once) * 2, position


class Numbers(Source):
    """A ring of numbers, by its BTF."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        b = BtfBuilder()
        self.value_type_id = b.struct("number", [("n", b.int("unsigned int", 4))])
        self.btf = b.btf()


@contextmanager
def ring_of(
    consumer: int, records: list[Sent], type_: Any, kind: type[Source] = Source
) -> Iterator[RingBuffer]:
    fd = os.memfd_create("ring")
    try:
        os.write(fd, pages(consumer, records)[0])
        with RingBuffer(kind(fd), type_) as ring:
            yield ring
    finally:
        os.close(fd)


@st.composite
def mixtures(draw: st.DrawFn) -> list[Sent]:
    """Runs of records of one length, and others among them, as many as fit."""
    found: list[Sent] = []
    for length, many, flag in draw(
        st.lists(
            st.tuples(
                st.sampled_from([12, 12, 16, 3, 0, 21]),
                st.integers(1, 20),
                st.sampled_from([0, 0, 0, 0, 0, DISCARD, BUSY]),
            ),
            max_size=8,
        )
    ):
        block = draw(st.binary(min_size=64, max_size=64)).replace(b"\xf0", b"\0")
        found += [Sent((bytes([at]) + block[at:])[:length], 0) for at in range(many)]
        found[-1:] = [Sent(found[-1].data, flag)]
    sizes = itertools.accumulate(-(-(8 + len(each.data)) // 8) * 8 for each in found)
    return [each for each, end in zip(found, sizes, strict=True) if end <= SIZE]


def expected(record: Sent, type_: Any) -> Any:
    if type_ is bytes:
        return record.data
    return SHORT if len(record.data) < type_.size else type_.decode(record.data)


def finished(records: list[Sent]) -> list[Sent]:
    """Up to the first that is being written, without what was discarded."""
    before = itertools.takewhile(lambda record: record.flag != BUSY, records)
    return [record for record in before if not record.flag]


def taken(records: Iterator[Any], count: int | None) -> list[Any]:
    """That many, or all; one that is refused does not end it."""
    found: list[Any] = []
    while count is None or len(found) < count:
        try:
            value = next(records)
            found.append(bytes(value) if isinstance(value, memoryview) else value)
        except FormatError:
            found.append(SHORT)
        except StopIteration:
            break
    return found


kinds = st.sampled_from([bytes, *TYPES.values()])
starts = st.integers(0, 1 << 60).map(lambda position: position & ~7)


@given(records=mixtures(), start=starts, type_=kinds, batch=st.integers(1, 30))
def test_everything_comes_once_and_in_order(
    records: list[Sent], start: int, type_: Any, batch: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, ring_of(start, records, type_) as ring:
        patch.setattr(ring_buffer, "_BATCH", batch)
        found = taken(ring.drain(), None)
        want = [expected(record, type_) for record in finished(records)]
        assert found == want
        assert list(map(type, found)) == list(map(type, want))
        done = list(itertools.takewhile(lambda record: record.flag != BUSY, records))
        assert ring._consumer[0] == pages(start, done)[1]


steps = st.lists(
    st.tuples(st.sampled_from(["drain", "read", "first", "views"]), st.integers(0, 15), kinds),
    max_size=8,
)


@given(records=mixtures(), start=starts, type_=kinds, batch=st.integers(1, 30), some=steps)
def test_loops_that_take_turns_yield_each_record_once(
    records: list[Sent], start: int, type_: Any, batch: int, some: list[tuple[str, int, Any]]
) -> None:
    """Loops of all sorts take turns, one of them from beginning to end, and types change."""
    left = finished(records)
    with pytest.MonkeyPatch.context() as patch, ring_of(start, records, type_) as ring:
        patch.setattr(ring_buffer, "_BATCH", batch)
        first = ring.drain()
        for how, count, now in [*some, ("drain", len(left), type_)]:
            ring.decode_as(now)
            views = ring.views()
            loops = {"drain": ring.drain(), "read": ring.read(0), "first": first, "views": views}
            came = taken(loops[how], min(count, len(left)))
            views.close()
            shape = bytes if how == "views" else now
            assert came == [expected(record, shape) for record in left[: len(came)]]
            assert how == "first" or len(came) == min(count, len(left))
            left = left[len(came) :]
        assert not left


def arrays(ring: RingBuffer, calls: int) -> list[Any]:
    """What each call gives, or the problem that it tells."""
    found: list[Any] = []
    for _ in range(calls):
        try:
            found.append(ring.drain_numpy()["n"].tolist())
        except FormatError as error:
            found.append(error.problem)
    return found


TOO_SHORT = 'its type has 4; short="zero" makes what is missing zero'
NUMBERS = [Sent(struct.pack("=I", number), 0) for number in range(5)]


@pytest.mark.parametrize("taken_before", [False, True])
def test_a_record_that_is_too_short_costs_no_other(taken_before: bool) -> None:  # noqa: FBT001
    pytest.importorskip("numpy")
    short = Sent(b"xx", 0)
    records = [*NUMBERS[:3], short, short, *NUMBERS[3:]]
    with ring_of(0, records, None, Numbers) as ring:
        if taken_before:
            assert next(ring.drain()).n == 0
        first = [0, 1, 2][taken_before:]
        assert arrays(ring, 5) == [first, TOO_SHORT, TOO_SHORT, [3, 4], []]


def test_who_reads_otherwise_meets_the_short_one_too() -> None:
    pytest.importorskip("numpy")
    records = [*NUMBERS[:2], Sent(b"xx", 0), *NUMBERS[2:]]
    for before in (0, 1):
        with ring_of(0, records, None, Numbers) as ring:
            loop = ring.drain()
            assert [next(loop).n for _ in range(before)] == [0][:before]
            assert arrays(ring, 1) == [[0, 1][before:]]
            assert taken(loop, 1) == [SHORT]
            assert arrays(ring, 1) == [[2, 3, 4]]


def test_what_is_there_before_a_length_that_cannot_be() -> None:
    pytest.importorskip("numpy")
    records = [*NUMBERS[:2], Sent(b"", 1 << 20)]
    with ring_of(0, records, None, Numbers) as ring:
        assert ring.drain_numpy()["n"].tolist() == [0, 1]
        for _ in range(2):
            with pytest.raises(FormatError, match="runs past the end"):
                ring.drain_numpy()
