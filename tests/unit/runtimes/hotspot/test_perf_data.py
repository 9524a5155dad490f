"""The counters of a JVM."""

from __future__ import annotations

import struct

import pytest

from purebpf.runtimes.hotspot.perf_data import find_counter, read_counters


def entry(order: str, name: str, value: int, kind: str = "J", vector: int = 0) -> bytes:
    text = name.encode() + b"\0"
    at = -(-(20 + len(text)) // 8) * 8
    head = struct.pack(f"{order}iiiBBBBi", at + 8, 20, vector, ord(kind), 0, 0, 0, at)
    return (head + text).ljust(at, b"\0") + struct.pack(f"{order}q", value)


def file(order: str, *entries: bytes) -> bytes:
    body = b"".join(entries)
    mark = bytes((order == "<", 2, 0, 1))
    return (
        b"\xca\xfe\xc0\xc0" + mark + struct.pack(f"{order}iiqii", 0, 0, 0, 32, len(entries)) + body
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_numbers_by_name(order: str) -> None:
    data = file(
        order, entry(order, "a.b", 7), entry(order, "text", 1, "B", 8), entry(order, "c", 9)
    )
    assert read_counters(data) == {"a.b": 7, "c": 9}
    at = find_counter(data, "c")
    assert at is not None
    assert struct.unpack_from(f"{order}q", data, at) == (9,)
    assert find_counter(data, "text") is None


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_what_is_cut_ends_the_list(cut: int) -> None:
    whole = file("<", entry("<", "a.b", 7), entry("<", "c", 9))
    assert read_counters(whole[:cut]).items() <= read_counters(whole).items()


def test_damage() -> None:
    assert read_counters(b"") == {}
    assert read_counters(b"\x7fELF".ljust(64, b"\0")) == {}
    endless = bytearray(file("<", entry("<", "a", 1)))
    endless[28:32] = struct.pack("<i", 2_000_000_000)
    assert read_counters(bytes(endless)) == {"a": 1}
    endless[32:36] = struct.pack("<i", 0)  # an entry without a size
    assert read_counters(bytes(endless)) == {}
