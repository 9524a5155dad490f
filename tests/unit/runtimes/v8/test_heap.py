"""Objects of V8, and memory that is none."""

from __future__ import annotations

import pytest

from purebpf.runtimes.memory import UnreadableError
from purebpf.runtimes.v8.heap import small_integer
from tests.unit.runtimes.v8.fake_v8 import (
    BASE,
    CONS,
    EXTERNAL,
    SLICED,
    THIN,
    FakeV8,
    smi,
)


@pytest.fixture
def v8() -> FakeV8:
    return FakeV8()


@pytest.mark.parametrize("text", ["", "handle", "größe", "größer als 𝄞 und 日本"])
def test_strings_of_their_own(v8: FakeV8, text: str) -> None:
    units = text.encode("utf-16-le")
    pointer = v8.text(units.decode("utf-16-le")) if len(units) == 2 * len(text) else None
    if pointer is None:  # characters of two units
        pointer = v8.compound(34, len(units) // 2, 0, BASE + 0x60000)
        v8.put_bytes(BASE + 0x60000, units)
    assert v8.heap().string(pointer) == text


def test_strings_of_parts(v8: FakeV8) -> None:
    first, second = v8.text("node:"), v8.text("internal")
    both = v8.compound(CONS, 13, first, second)
    more = v8.compound(CONS, 26, both, v8.compound(THIN, 13, both))
    part = v8.compound(SLICED, 10, more, smi(3))
    heap = v8.heap()
    assert heap.string(both) == "node:internal"
    assert heap.string(more) == "node:internalnode:internal"
    assert heap.string(part) == "e:internal"
    assert heap.string(more, 7) == "node:in"
    assert heap.string(v8.compound(SLICED, 9, more, smi(15))) == "de:intern"


def test_strings_outside_of_the_heap(v8: FakeV8) -> None:
    v8.put_bytes(BASE + 0x60000, b"text of a module")
    pointer = v8.compound(EXTERNAL, 16, 0, BASE + 0x60000)
    assert v8.heap().string(pointer) == "text of a module"
    uncached = v8.compound(EXTERNAL | 16, 16, 0, BASE + 0x60000)
    with pytest.raises(UnreadableError):
        v8.heap().string(uncached)


def test_strings_that_contain_themselves_end(v8: FakeV8) -> None:
    heap = v8.heap()
    for kind in (CONS, THIN, SLICED):
        pointer = v8.compound(kind, 1 << 30, 0, 0)
        v8.field(pointer, 16, pointer)
        v8.field(pointer, 24, pointer if kind == CONS else smi(0))
        v8.reads = 0
        with pytest.raises(UnreadableError):
            heap.string(pointer, 1 << 22)
        assert v8.reads < 50_000


@pytest.mark.parametrize("length", [1 << 31, 0xFFFFFFFF, 1 << 20])
def test_false_lengths_are_bounded(v8: FakeV8, length: int) -> None:
    pointer = v8.text("x")
    v8.put_number(pointer - 1 + 12, 4, length)
    assert len(v8.heap().string(pointer, 100)) == 100
    array = v8.byte_array(b"x")
    v8.field(array, 8, smi(length))
    with pytest.raises(UnreadableError):
        v8.heap().byte_array(array)


def test_a_slice_before_its_string_is_none(v8: FakeV8) -> None:
    pointer = v8.compound(SLICED, 4, v8.text("text"), smi(-2))
    with pytest.raises(UnreadableError):
        v8.heap().string(pointer)


def test_what_is_no_object_has_no_type(v8: FakeV8) -> None:
    heap = v8.heap()
    moved = v8.text("x")
    v8.put(moved - 1, BASE + 0x5000)  # the new address, while the collector moves it
    for pointer in (0, smi(7), 3, 1, (1 << 64) - 3, moved):
        assert heap.type(pointer) == -1
        assert not heap.is_string(pointer)
        with pytest.raises(UnreadableError):
            heap.string(pointer)


def test_arrays(v8: FakeV8) -> None:
    heap = v8.heap()
    array = v8.array([smi(4), smi(-9), v8.text("x")])
    assert [small_integer(word) for word in heap.words(array, 2)] == [4, -9]
    assert small_integer(heap.element(array, 1)) == -9
    for at in (-1, 3, 1 << 40):
        with pytest.raises(UnreadableError):
            heap.element(array, at)
    with pytest.raises(UnreadableError):
        small_integer(heap.element(array, 2))


def test_strings_of_parts_that_share_parts_end(v8: FakeV8) -> None:
    """Each part is twice in the next one, 60 times over, and the innermost one is empty."""
    heap = v8.heap()
    pointer = v8.text("")
    for _ in range(60):
        pointer = v8.compound(CONS, 100, pointer, pointer)
    before = v8.reads
    with pytest.raises(UnreadableError):
        heap.string(pointer)
    assert v8.reads - before < 100_000
