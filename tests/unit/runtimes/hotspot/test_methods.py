"""Names and lines of methods."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.runtimes.hotspot.methods import JavaMethod, Methods, method_identity
from purebpf.runtimes.memory import Memory
from tests.unit.runtimes.hotspot.fake_jvm import BASE, VERSIONS, FakeJvm, packed

METHOD = BASE + 0x70000


def methods_of(jvm: FakeJvm) -> Methods:
    return Methods(Memory(jvm.read), jvm.layout)


def read(jvm: FakeJvm, at: int = METHOD) -> JavaMethod:
    method = methods_of(jvm).find(at)
    assert method is not None
    return method


@pytest.mark.parametrize("version", VERSIONS)
def test_a_method_of_each_version(version: int) -> None:
    jvm = FakeJvm(version)
    least = jvm.layout.least_byte
    # line 12 at bytecode 0, 14 at 5 (a short entry), 11 at 20 (a long one, backwards)
    lines = bytes([0xFF]) + packed(least, 0, 24) + bytes([5 << 3 | 2, 0xFF])
    jvm.method(METHOD, "total", lines + packed(least, 30, 5) + b"\0")
    method = read(jvm)
    assert method[:4] == ("shop.Orders", "total", "(I)V", "Orders.java")
    assert [method.line(at) for at in (0, 4, 5, 19, 20, 39)] == [12, 12, 14, 14, 11, 11]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_method_differs_from_another_at_its_place(version: int) -> None:
    jvm = FakeJvm(version)
    layout = jvm.layout

    def identity() -> int:
        return method_identity(Memory(jvm.read), layout, METHOD)

    jvm.method(METHOD, "total")
    first, symbol = identity(), METHOD + 0x600
    assert first
    uses = symbol + (2 if layout.symbol_length == 0 else 0)
    jvm.put_number(uses, 2, 77)
    assert identity() == first  # somebody else uses its name
    jvm.put_bytes(symbol + layout.symbol_body, b"ship")
    assert identity() != first
    jvm.put_bytes(symbol + layout.symbol_body, b"shop")
    assert identity() == first
    lines = jvm.bytecodes(METHOD) + 40
    for at in (lines, lines + 15):
        jvm.put_number(at, 1, 77)
        assert identity() != first  # another version of the class
        jvm.put_number(at, 1, 0)
    assert identity() == first
    jvm.put(METHOD + 0x200 + layout.pool_size + 8, symbol + 0x80)
    assert identity() != first  # another name
    jvm.put(METHOD + layout.method_constant, 8)
    assert identity() == 0


def test_a_method_without_lines() -> None:
    jvm = FakeJvm()
    jvm.method(METHOD, "total")
    assert read(jvm).line(7) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop/Orders$$Lambda$14+0x0000000800c03000", "shop.Orders$$Lambda"),
        ("shop/Orders$$Lambda/0x00007f1c2c0012a0", "shop.Orders$$Lambda"),
        ("shop/Orders$1", "shop.Orders$1"),
    ],
)
def test_hidden_classes_have_one_name(name: str, expected: str) -> None:
    jvm = FakeJvm()
    jvm.method(METHOD, "total")
    jvm.put(METHOD + 0x300 + jvm.layout.class_name, jvm.symbol(METHOD + 0x800, name))
    assert read(jvm).class_name == expected


def test_the_index_of_a_bytecode_is_in_its_method() -> None:
    jvm = FakeJvm()
    jvm.method(METHOD, "total", code_size=40)
    start, methods = jvm.bytecodes(METHOD), methods_of(jvm)
    index = [methods.bytecode_index(METHOD, start + at) for at in (-1, 0, 39, 40)]
    assert index == [None, 0, 39, None]
    assert methods.bytecode_index(METHOD, 0) is None
    assert methods.bytecode_index(0x1234, start) is None


def test_a_native_method_has_no_bytecodes() -> None:
    jvm = FakeJvm()
    jvm.method(METHOD, "read", code_size=0)
    methods = methods_of(jvm)
    assert methods.bytecode_index(METHOD, 0) == 0
    assert methods.bytecode_index(METHOD, jvm.bytecodes(METHOD) + 1) is None


def test_a_pool_that_leads_to_itself_is_no_method() -> None:
    jvm = FakeJvm()
    jvm.method(METHOD, "total")
    for word in range(0, 0x800, 8):
        jvm.put(METHOD + word, METHOD)
    method = methods_of(jvm).find(METHOD)
    assert method is None or len(method.name) <= 1024


@pytest.mark.parametrize("before_end", [*range(1, 16), 256 + 3, 512 + 1])
def test_lines_over_the_end_of_a_page(before_end: int) -> None:
    """Tables are read in pieces, which end at a page; an entry may need three of them."""
    jvm = FakeJvm()
    least = jvm.layout.least_byte
    entry = b"\xff" + packed(least, 2 * 300, 2 * 2000)  # 300 bytecodes and 2,000 lines further
    lines = entry * 150 + b"\0"
    assert len(lines) > 600
    where = BASE + 0x91000 - before_end
    jvm.put_bytes(where, lines)
    found = methods_of(jvm)._lines(where)
    assert found == tuple((300 * at, 2000 * at) for at in range(1, 151))


def test_lines_that_end_within_an_entry_are_none() -> None:
    """A part of them would say the line of its last entry for all that follows."""
    jvm = FakeJvm()
    table = bytes([5 << 3 | 2, 5 << 3 | 2, 0xFF, 0xFF])
    jvm.method(METHOD, "total")
    where = BASE + len(jvm.memory) - len(table)
    jvm.put_bytes(where, table)
    assert methods_of(jvm)._lines(where) == ()


def test_lines_without_an_end_are_bounded() -> None:
    jvm = FakeJvm()
    jvm.method(METHOD, "total", b"\x09")
    jvm.put_bytes(jvm.bytecodes(METHOD) + 40, b"\x09" * 0x140000)
    jvm.symbol(METHOD + 0x640, "x")  # is in these lines
    before = jvm.reads
    methods_of(jvm).find(METHOD)
    assert jvm.reads - before < 1000


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_lines_in_order(lines: bytes) -> None:
    jvm = FakeJvm()
    jvm.method(METHOD, "total")
    where = BASE + 0x90000
    jvm.put_bytes(where, lines + b"\0")
    found = methods_of(jvm)._lines(where)
    assert list(found) == sorted(found)
    assert len(found) <= len(lines)
