"""Monitors in the memory of a JVM, laid out here as libjvm.so describes it."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.hotspot.monitors import WantedMonitor, wanted_monitors
from purebpf.runtimes.hotspot.vm_structs import EXPORTS
from purebpf.runtimes.memory import Memory

FIELDS = (
    ("ThreadsSMRSupport", "_java_thread_list", 0, 0x9000),
    ("ThreadsList", "_length", 0, 0),
    ("ThreadsList", "_threads", 8, 0),
    ("Thread", "_osthread", 16, 0),
    ("OSThread", "_thread_id", 24, 0),
    ("JavaThread", "_current_pending_monitor", 32, 0),
    ("ObjectMonitor", "_owner", 8, 0),
    ("ObjectMonitor", "_object", 16, 0),
    ("CompressedKlassPointers", "_narrow_klass._base", 0, 0x9010),
    ("CompressedKlassPointers", "_narrow_klass._shift", 0, 0x9018),
    ("Klass", "_name", 24, 0),
    ("Symbol", "_length", 0, 0),
    ("Symbol", "_body[0]", 6, 0),
    ("JavaThread", "_stack_base", 40, 0),
    ("JavaThread", "_stack_size", 48, 0),
    ("Other", "_field", 0, 0),
)
STRIDE = 48
WAITER, OWNER = 0x20000, 0x21000


class Jvm:
    def __init__(self, fields: tuple[tuple[str, str, int, int], ...] = FIELDS) -> None:
        self._fields = fields
        self._bytes = bytearray(0x40000)
        self.symbols = {name: 0x100 + 8 * at for at, name in enumerate(EXPORTS)}
        self._describe()
        self._fill()

    def put(self, at: int, *words: int) -> None:
        struct.pack_into(f"<{len(words)}Q", self._bytes, at, *words)

    def text(self, at: int, value: str) -> int:
        self._bytes[at : at + len(value) + 1] = value.encode() + b"\0"
        return at

    def _describe(self) -> None:
        for name, value in zip(EXPORTS, (0x1000, STRIDE, 0, 8, 24, 32, 40), strict=True):
            self.put(self.symbols[name], value)
        texts = 0x4000
        for number, (kind, name, offset, address) in enumerate(self._fields):
            at = 0x1000 + number * STRIDE
            self.put(at, self.text(texts, kind), self.text(texts + 64, name), 0)
            self.put(at + 24, int(bool(address)), offset, address)
            texts += 128

    def _fill(self) -> None:
        self.put(0x9000, 0xA000)  # the list of threads
        self.put(0xA000, 2, 0xB000)
        self.put(0xB000, WAITER, OWNER)
        for thread, tid, wanted in ((WAITER, 501, 0xC000), (OWNER, 502, 0)):
            self.put(thread + 16, thread + 0x100)
            self.put(thread + 0x100 + 24, tid)
            self.put(thread + 32, wanted)
        self.put(0xC008, OWNER, 0xC100)
        self.put(0xC100, 0xD000)  # the handle of the object
        self.put(0xD008, 0xE00)  # its class, compressed
        self.put(0x9010, 0, 4)
        self.put(0xE000 + 24, 0xF000)
        struct.pack_into("<H", self._bytes, 0xF000, 14)
        self.text(0xF006, "shop/OrderBook")

    def read(self, address: int, size: int) -> bytes:
        return bytes(self._bytes[address : address + size])


def test_a_waiter_its_monitor_and_the_owner() -> None:
    jvm = Jvm()
    assert wanted_monitors(Memory(jvm.read), jvm.symbols) == [
        WantedMonitor(501, 0xC000, "shop.OrderBook", 502)
    ]


def test_an_owner_given_by_an_address_on_its_stack() -> None:
    jvm = Jvm()
    jvm.put(WAITER + 40, 0x90000, 0x8000)
    jvm.put(OWNER + 40, 0x80000, 0x8000)
    jvm.put(0xC008, 0x7FF00)
    (wanted,) = wanted_monitors(Memory(jvm.read), jvm.symbols)
    assert wanted.owner == 502


@pytest.mark.parametrize("at", [0x100, 0x9000, 0xA008])
def test_garbage_is_no_monitor(at: int) -> None:
    jvm = Jvm()
    jvm.put(at, 0x7FFF_FFFF_FFFF)
    assert wanted_monitors(Memory(jvm.read), jvm.symbols) == []


def test_a_class_that_cannot_be_read_is_left_empty() -> None:
    jvm = Jvm()
    jvm.put(0xC010, 0)
    (wanted,) = wanted_monitors(Memory(jvm.read), jvm.symbols)
    assert (wanted.tid, wanted.class_name) == (501, "")


def without(*names: str) -> tuple[tuple[str, str, int, int], ...]:
    return tuple(field for field in FIELDS if field[1] not in names)


OF_25 = (
    ("JavaThread", "_monitor_owner_id", 56, 0),
    ("JavaThread", "_lock_stack", 64, 0),
    ("LockStack", "_top", 0, 0),
    ("LockStack", "_base[0]", 16, 0),
    ("CompressedKlassPointers", "_base", 0, 0x9010),
    ("CompressedKlassPointers", "_shift", 0, 0x9018),
)


def of_25(owner: int) -> Jvm:
    jvm = Jvm((*without("_narrow_klass._base", "_narrow_klass._shift"), *OF_25))
    jvm.put(WAITER + 56, 7)
    jvm.put(OWNER + 56, 8)
    jvm.put(WAITER + 64, 80)  # its lock stack is empty
    jvm.put(OWNER + 64, 88)
    jvm.put(OWNER + 80, 0xD000)
    jvm.put(0xC008, owner)
    return jvm


@pytest.mark.parametrize(("owner", "tid"), [(8, 502), (1, 502), (0, 0)])
def test_owners_of_jdk_25_are_numbers_and_a_first_owner_has_it_on_its_lock_stack(
    owner: int, tid: int
) -> None:
    jvm = of_25(owner)
    assert wanted_monitors(Memory(jvm.read), jvm.symbols) == [
        WantedMonitor(501, 0xC000, "shop.OrderBook", tid)
    ]


def test_an_owner_that_nobody_is_stays_unknown() -> None:
    jvm = of_25(1)
    jvm.put(OWNER + 64, 80)
    assert wanted_monitors(Memory(jvm.read), jvm.symbols)[0].owner == 0


def test_threads_of_jdk_11_are_a_chain() -> None:
    jvm = Jvm(
        (
            *without("_java_thread_list", "_narrow_klass._base", "_narrow_klass._shift"),
            ("Threads", "_thread_list", 0, 0x9020),
            ("JavaThread", "_next", 56, 0),
            ("Universe", "_narrow_klass._base", 0, 0x9010),
            ("Universe", "_narrow_klass._shift", 0, 0x9018),
        )
    )
    jvm.put(0x9020, WAITER)
    jvm.put(WAITER + 56, OWNER)
    jvm.put(0xC010, 0xD000)  # the object, without a handle
    expected = [WantedMonitor(501, 0xC000, "shop.OrderBook", 502)]
    assert wanted_monitors(Memory(jvm.read), jvm.symbols) == expected
    jvm.put(OWNER + 56, WAITER)  # a chain without an end
    assert WantedMonitor(501, 0xC000, "shop.OrderBook", 502) in wanted_monitors(
        Memory(jvm.read), jvm.symbols
    )
