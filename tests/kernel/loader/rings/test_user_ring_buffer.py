"""Records written by user space, taken by a program."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.rings.user_ring_buffer import UserRingBuffer

pytestmark = pytest.mark.needs("bpf", "user_ring_buffer")

DATA = Path(__file__).parents[3] / "data" / "load_user_ring.bpf.o"
ROOM = 4096 // 24  # records of 16 bytes and their headers
PRIME = 101


@pytest.fixture
def obj():
    with purebpf.load(DATA) as loaded:
        yield loaded


def drain(obj: purebpf.Object) -> int:
    return obj.programs["work"].test_run().retval


def test_records_arrive_whole_and_in_order(obj):
    with obj.maps["orders"].writer() as orders:
        for round_ in range(5):  # past the end of the ring, more than once
            for number in range(PRIME):
                assert orders.write((number, f"no {number}"))
            assert drain(obj) == PRIME
            assert obj.globals["taken"] == PRIME * (round_ + 1)
        assert obj.globals["total"] == 5 * sum(range(PRIME))
        assert obj.globals["last"] == f"no {PRIME - 1}"
        assert obj.globals["short_ones"] == 0
        assert drain(obj) == 0


def test_a_full_ring_takes_no_more_until_it_is_drained(obj):
    with obj.maps["orders"].writer() as orders:
        assert orders.write_all([(1, "x")] * 1000) == ROOM
        assert not orders.write((1, "x"))
        assert not orders.write((1, "x"), timeout=0.01)
        assert drain(obj) == ROOM
        assert orders.write((1, "x"))
        assert drain(obj) == 1


@pytest.mark.parametrize("timeout", [None, 1e10])
def test_waiting_ends_when_a_program_made_room(obj, timeout):
    with obj.maps["orders"].writer() as orders:
        orders.write_all([(1, "x")] * 1000)
        worker = threading.Timer(0.05, lambda: drain(obj))
        worker.start()
        assert orders.write((7, "late"), timeout=timeout)
        worker.join()
        drain(obj)
        assert obj.globals["taken"] == ROOM + 1
        assert obj.globals["last"] == "late"


def test_bytes_are_written_as_they_are(obj):
    with UserRingBuffer(obj.maps["orders"], bytes) as orders:
        assert orders.write(b"1234")
        assert drain(obj) == 1
        assert obj.globals["short_ones"] == 1
        with pytest.raises(ValueError, match="a record of 4096 bytes exceeds a ring of 4096"):
            orders.write(bytes(4096))
        with pytest.raises(ValueError, match="a record of 4096 bytes exceeds a ring of 4096"):
            orders.write_all([b"1234", bytes(4096)])
        assert drain(obj) == 0


def test_what_is_written_outlives_its_writer(obj):
    with obj.maps["orders"].writer("struct order") as orders:
        assert repr(orders) == "<UserRingBuffer of 'orders'>"
        orders.write({"amount": 3, "what": "then"})
    with obj.maps["orders"].writer() as orders:
        orders.write((4, "now"))
    orders.close()
    assert repr(orders) == "<UserRingBuffer of 'orders', closed>"
    with pytest.raises(ValueError, match="is closed"):
        orders.write((5, "never"))
    assert drain(obj) == 2
    assert obj.globals["total"] == 7


def test_other_maps_are_not_written_this_way(obj):
    with pytest.raises(purebpf.NotSupportedError, match="a ARRAY is not a user ring buffer"):
        obj.maps[".bss"].writer()
    with pytest.raises(purebpf.SchemaError):
        obj.maps["orders"].writer("struct disorder")
