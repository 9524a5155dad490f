"""Many elements: the same answers in batches, one by one, and while others write."""

from __future__ import annotations

import errno
import json
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from purebpf.abi.bpf import BPF_F_NO_PREALLOC
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import ENOTSUPP, KernelError
from purebpf.loader.host import cpus
from purebpf.loader.maps import map_batch, map_traits
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Call, Interposer
from tests.support.host.faults import slow_host

pytestmark = pytest.mark.needs("bpf")

COUNT = 307 if slow_host() else 3001


def key(number: int) -> bytes:
    return struct.pack("=Q", number)


def without_batches(error: int, *, popping: bool = True) -> Interposer:
    """A substitute as before Linux 5.6; not `popping`, before 5.14."""

    def decide(call: Call) -> int | None:
        if call.command.endswith("_BATCH"):
            return error
        old = call.command == "BPF_MAP_LOOKUP_AND_DELETE_ELEM"
        return ENOTSUPP if old and not popping else None

    return Interposer(decide)


DOORS = {
    "batch": nullcontext,
    "einval": lambda: replaced(without_batches(errno.EINVAL)),
    "enotsupp": lambda: replaced(without_batches(ENOTSUPP)),
    "old": lambda: replaced(without_batches(errno.EINVAL, popping=False)),
}


@pytest.fixture(params=DOORS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    # so that there are many chunks
    monkeypatch.setattr(map_batch, "_CHUNK_BYTES", 1 << 10 if slow_host() else 1 << 13)
    with DOORS[request.param]():
        yield request.param


def made(kind: int, entries: int = COUNT, value: int = 8, flags: int = 0) -> Map:
    return Map.create(MapSpec("bulk", kind, 8, value, entries, flags=flags))


HASHES = [
    t.BPF_MAP_TYPE_HASH,
    t.BPF_MAP_TYPE_PERCPU_HASH,
    t.BPF_MAP_TYPE_LRU_HASH,
    t.BPF_MAP_TYPE_LRU_PERCPU_HASH,
]


def value(kind: int, number: int) -> object:
    if kind in map_traits.PER_CPU:
        return tuple(key(number * 10 + cpu) for cpu in range(len(cpus.possible())))
    return key(number * 3)


@pytest.mark.parametrize("kind", HASHES, ids=map_traits.type_name)
def test_everything_goes_in_comes_out_and_leaves(kind, way):
    # An LRU map starts to evict before it is full: each CPU sets elements aside.
    with made(kind, 4 * COUNT) as m:
        expected = {key(number): value(kind, number) for number in range(COUNT)}
        m.update(expected)
        assert dict(m.items()) == expected
        assert sorted(m) == sorted(expected)
        assert sorted(m.values()) == sorted(expected.values())
        assert len(m) == COUNT
        assert m.delete([key(COUNT), key(0), key(COUNT + 1), key(1), key(0)]) == 2
        taken = m.drain()
        assert Counter(each for each, _ in taken) == Counter(list(expected)[2:])
        assert dict(taken).items() <= expected.items()
        assert list(m) == []
        m.update(list(expected.items())[:10])
        m.clear()
        assert len(m) == 0


def test_batches_were_used_where_there_are_any():
    with made(t.BPF_MAP_TYPE_HASH) as m, replaced(Interposer()) as substitute:
        m.update((key(number), key(number)) for number in range(COUNT))
        len(m)
        dict(m.items())
        m.drain()
        m.delete([key(1)] * 5)
    assert {command for command in substitute.commands if not command.endswith("_BATCH")} == {
        "BPF_MAP_DELETE_ELEM",
        "BPF_OBJ_GET_INFO_BY_FD",  # of the buffers' lengths, before each batch
    }
    assert len(substitute.calls) < 30


def test_a_kernel_without_batches_is_asked_once_for_updates():
    with made(t.BPF_MAP_TYPE_HASH) as m, replaced(without_batches(errno.EINVAL)) as substitute:
        m.update({key(number): key(number) for number in range(50)})
        m.update({key(number): key(number) for number in range(50)})
        assert len(m) == 50
    assert substitute.commands.count("BPF_MAP_UPDATE_BATCH") == 1


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_ARRAY, t.BPF_MAP_TYPE_PERCPU_ARRAY])
def test_an_array_is_read_in_bulk_with_every_index(kind, way):
    entries = COUNT // 3
    with Map.create(MapSpec("bulk", kind, 4, 8, entries)) as m:
        m.update((index, value(kind, index)) for index in range(entries))
        assert list(m.items()) == [(index, value(kind, index)) for index in range(entries)]
        m.clear()
        assert set(map(str, m.values())) == {str(m[0])}
        assert m[17] == m[18]


def test_an_lpm_trie(way):
    with made(t.BPF_MAP_TYPE_LPM_TRIE, 1000, flags=BPF_F_NO_PREALLOC) as m:
        rules = {struct.pack("=I", 32) + struct.pack(">I", n): key(n) for n in range(500)}
        m.update(rules)
        assert dict(m.items()) == rules
        assert dict(m.drain()) == rules
        assert not m
        with pytest.raises(KernelError) as caught:
            m.update([(struct.pack("=II", 33, 0), key(0))])  # a prefix longer than the key
        assert caught.value.errno == errno.EINVAL


@pytest.mark.parametrize("kind", HASHES, ids=map_traits.type_name)
def test_a_bucket_with_more_elements_than_asked_for_makes_room(kind, monkeypatch):
    monkeypatch.setattr(map_batch, "chunk_size", lambda shape: 1)
    with made(kind, 4096) as m, replaced(Interposer()) as substitute:
        expected = {key(number): value(kind, number) for number in range(1500)}
        m.update(expected)
        substitute.calls.clear()
        assert dict(m.items()) == expected
        batches = [call for call in substitute.calls if call.command.endswith("_BATCH")]
        asked = {call.field("batch", "count") for call in batches}
        assert {1, 2} <= asked  # some of 4096 buckets have two of 1500 elements, or more
        assert Counter(each for each, _ in m.drain()) == Counter(list(expected))


def test_a_full_map_says_which_key_did_not_fit():
    with made(t.BPF_MAP_TYPE_HASH, 10, flags=BPF_F_NO_PREALLOC) as m:
        with pytest.raises(
            KernelError, match="the map is full: all 10 entries are in use"
        ) as caught:
            m.update((key(number), key(number)) for number in range(20))
        assert caught.value.errno == errno.E2BIG
        assert f"at {key(10)!r}" in str(caught.value)
        assert len(m) == 10


@pytest.mark.parametrize("failing", ["LOOKUP_BATCH", "LOOKUP_AND_DELETE_BATCH", "UPDATE_BATCH"])
def test_any_other_failure_of_a_batch_is_raised(failing):
    def decide(call: Call) -> int | None:
        return errno.ENOMEM if call.command == f"BPF_MAP_{failing}" else None

    with made(t.BPF_MAP_TYPE_HASH) as m, replaced(Interposer(decide)):
        m[key(1)] = key(1)
        use = {
            "LOOKUP_BATCH": lambda: list(m.items()),
            "LOOKUP_AND_DELETE_BATCH": m.drain,
            "UPDATE_BATCH": lambda: m.update({key(2): key(2)}),
        }
        with pytest.raises(KernelError) as caught:
            use[failing]()
        assert caught.value.errno == errno.ENOMEM
        assert len(m._store.elements._idle) == 1


class Churn:
    """A thread that inserts and deletes elements from `first` on until it must stop."""

    def __init__(self, target: Map, first: int) -> None:
        self._target = target
        self._first = first
        self._over = threading.Event()
        self.running = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = self._first
        while not self._over.is_set():
            self._target[key(number)] = key(number)
            if number >= self._first + 50:
                self._target.delete([key(number - 50)])
                self.running.set()
            number += 1

    def __enter__(self) -> None:
        self._thread.start()
        assert self.running.wait(10)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_HASH, t.BPF_MAP_TYPE_PERCPU_HASH])
@pytest.mark.parametrize("batches", [True, False])
def test_what_stays_is_seen_once_while_others_come_and_go(kind, batches):
    stable = {key(number): value(kind, number) for number in range(200)}
    substitute = Interposer() if batches else without_batches(errno.EINVAL)
    with made(t.BPF_MAP_TYPE_HASH, 2000) as m, replaced(substitute):
        m.update({each: key(7) for each in stable})
        with Churn(m, 10**6):
            for _ in range(20):
                seen = Counter(each for each, _ in m.items())
                assert max(seen.values()) == 1
                assert stable.keys() <= seen.keys()
                assert stable.keys() <= set(m)


def test_two_drains_at_once_share_the_elements():
    numbers = range(COUNT)
    with made(t.BPF_MAP_TYPE_HASH, COUNT) as m:
        m.update((key(number), key(number)) for number in numbers)
        found: list[list] = []
        threads = [threading.Thread(target=lambda: found.append(m.drain())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = Counter(each for part in found for each, _ in part)
        assert taken == Counter(map(key, numbers))


def test_threads_do_not_see_each_others_values():
    with made(t.BPF_MAP_TYPE_HASH) as m:
        m.update((key(number), key(number)) for number in range(4))
        seen = []

        def look(number: int) -> None:
            seen.append({m[key(number)] for _ in range(3000)} == {key(number)})

        threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [True] * 4


def dumped(m: Map) -> list[dict]:
    command = ["bpftool", "-j", "map", "dump", "id", str(m.info.id)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def from_hex(digits: list[str]) -> bytes:
    return bytes(int(digit, 16) for digit in digits)


@pytest.mark.needs("bpftool")
def test_bpftool_dumps_the_same_hash():
    with made(t.BPF_MAP_TYPE_HASH) as m:
        m.update((key(number), key(number**2)) for number in range(97))
        theirs = {from_hex(row["key"]): from_hex(row["value"]) for row in dumped(m)}
        assert theirs == dict(m.items())


@pytest.mark.needs("bpftool")
def test_bpftool_dumps_the_same_per_cpu_array():
    with Map.create(MapSpec("bulk", t.BPF_MAP_TYPE_PERCPU_ARRAY, 4, 4, 7)) as m:
        count = len(cpus.possible())
        m.update(
            (index, [struct.pack("=I", index * 100 + cpu) for cpu in range(count)])
            for index in range(7)
        )
        theirs = {
            int.from_bytes(from_hex(row["key"]), "little"): tuple(
                from_hex(each["value"])[:4] for each in row["values"]
            )
            for row in dumped(m)
        }
        assert theirs == dict(m.items())


def test_what_a_frozen_map_keeps_is_not_counted_as_deleted() -> None:
    with Map.create(MapSpec("frozen", t.BPF_MAP_TYPE_HASH, 8, 8, 4)) as found:
        found[key(1)] = key(2)
        found.freeze()
        for take in (lambda: found.delete([key(1)]), lambda: found.pop(key(1)), found.drain):
            with pytest.raises(KernelError, match="EPERM"):
                take()
        assert dict(found.items()) == {key(1): key(2)}
