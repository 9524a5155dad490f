"""jitdump files, written here by the specification's words."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.jitdump import JitDump, is_jitdump_name

ARCH_TIMESTAMP = 1


def header(order="<", *, flags=0, version=1, more=b""):
    magic = {"<": b"DTiJ", ">": b"JiTD"}[order]
    sizes = struct.pack(f"{order}IIIII", version, 40 + len(more), 62, 0, 4711)
    return magic + sizes + struct.pack(f"{order}QQ", 1, flags) + more


def record(kind, time, body, order="<"):
    return struct.pack(f"{order}IIQ", kind, 16 + len(body), time) + body


def load(time, start, size, index, name=b"f", *, order="<", code=None):
    body = struct.pack(f"{order}IIQQQQ", 7, 8, start, start, size, index)
    code = b"\xcc" * size if code is None else code
    return record(0, time, body + name + b"\0" + code, order)


def move(time, old, new, size, index, order="<"):
    body = struct.pack(f"{order}IIQQQQQ", 7, 8, new, old, new, size, index)
    return record(1, time, body, order)


def debug_info(time, start, lines, order="<"):
    body = struct.pack(f"{order}QQ", start, len(lines))
    for address, line, file in lines:
        body += struct.pack(f"{order}QII", address, line, 0) + file + b"\0"
    return record(2, time, body, order)


def unwinding_info(time, order="<"):
    return record(4, time, struct.pack(f"{order}QQQ", 20, 20, 0) + bytes(20), order)


def close(time, order="<"):
    return record(3, time, b"", order)


def grow(dump, data):
    dump.grow(lambda at, size: data[at : at + size], len(data))
    return dump


def read(data):
    return grow(JitDump(), data)


def names(dump, *addresses):
    return [dump.find(address) for address in addresses]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("flags", [0, ARCH_TIMESTAMP])
def test_every_record_of_the_specification(order, flags):
    dump = read(
        header(order, flags=flags, more=b"later fields")
        + debug_info(1, 0x1000, [(0x1000, 1, b"a.js"), (0x1008, 2, b"b.js")], order)
        + unwinding_info(2, order)
        + load(3, 0x1000, 16, 0, "Ünï".encode(), order=order)
        + load(4, 0x2000, 32, 1, b"second", order=order)
        + record(99, 5, b"of a later version", order)
        + move(6, 0x2000, 0x3000, 32, 1, order)
        + close(7, order)
    )
    assert dump.problem == ""
    assert len(dump) == 3
    assert names(dump, 0xFFF, 0x1000, 0x100F, 0x1010, 0x201F, 0x3001, 0x3020) == [
        None, ("Ünï", 0), ("Ünï", 15), None, ("second", 31), ("second", 1), None,
    ]  # fmt: skip


def test_what_was_generated_last_names_the_address_whatever_its_place_in_the_file():
    dump = read(header() + load(9, 0x100, 64, 0, b"new") + load(5, 0x110, 16, 1, b"old"))
    assert names(dump, 0x100, 0x110, 0x120) == [("new", 0), ("new", 16), ("new", 32)]
    dump = read(header() + load(5, 0x100, 64, 0, b"old") + load(9, 0x110, 16, 1, b"new"))
    assert names(dump, 0x100, 0x110, 0x120) == [("old", 0), ("new", 0), ("old", 32)]


def test_a_move_of_what_was_never_loaded_names_nothing():
    dump = read(header() + move(1, 0x100, 0x200, 16, 5))
    assert (len(dump), dump.find(0x200), dump.problem) == (0, None, "")


def test_a_function_without_code_or_without_a_name():
    dump = read(header() + load(1, 0x100, 0, 0, b"empty") + load(2, 0x200, 8, 1, b""))
    assert names(dump, 0x100, 0x200) == [None, None]


def test_a_file_that_grows_byte_by_byte():
    parts = [header(), load(1, 0x100, 8, 0, b"a"), unwinding_info(2), load(3, 0x200, 8, 1, b"b")]
    data = b"".join(parts)
    dump = JitDump()
    for size in range(len(data) + 1):
        grow(dump, data[:size])
        assert dump.problem == ""
        assert (dump.find(0x100) is not None) == (size >= len(parts[0] + parts[1]))
        assert (dump.find(0x200) is not None) == (size == len(data))


def test_a_file_that_was_cut_while_it_was_read():
    data = header() + load(1, 0x100, 8, 0, b"a") + load(2, 0x200, 8, 1, b"b")
    short = len(header()) + 70
    dump = JitDump()
    dump.grow(lambda at, size: data[:short][at : at + size], len(data))
    assert dump.problem == ""
    assert len(dump) <= 2


def test_large_code_is_skipped():
    asked = []
    data = header() + load(1, 0x1000, 1 << 22, 0, b"huge") + load(2, 0x10, 8, 1, b"next")

    def counted(at, size):
        asked.append(size)
        return data[at : at + size]

    dump = JitDump()
    dump.grow(counted, len(data))
    assert names(dump, 0x1000, 0x10) == [("huge", 0), ("next", 0)]
    assert sum(asked) < 1 << 20


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x7fELF" + bytes(60), "offset 0: not a jitdump file"),
        (header(version=2), "offset 4: version 2, a header of 40 bytes"),
        (
            b"DTiJ" + struct.pack("<II", 1, 8) + bytes(28),
            "offset 4: version 1, a header of 8 bytes",
        ),
        (header() + bytes(16), "offset 40: a record of 0 bytes"),
        (header() + struct.pack("<IIQ", 0, 15, 0), "offset 40: a record of 15 bytes"),
    ],
)
def test_a_file_that_is_not_a_jitdump_is_refused(data, problem):
    dump = read(data + load(1, 0x100, 8, 0))
    assert dump.problem == problem
    assert dump.find(0x100) is None


@pytest.mark.parametrize(
    ("size", "code", "found"),
    [
        (1 << 63, b"", ("f", 0)),  # more than the record holds
        ((1 << 64) - 1, b"", ("f", 0)),
        ((1 << 64) - 8, b"\xcc" * 8, ("f", 0)),
        (8, b"", ("f", 0)),
    ],
)
def test_code_sizes_that_lie(size, code, found):
    dump = read(header() + load(1, 0x100, size, 0, code=code) + load(2, 0x10, 8, 1, b"next"))
    assert names(dump, 0x100, 0x10) == [found, ("next", 0)]


def test_a_name_without_an_end_and_one_that_is_too_long():
    body = struct.pack("<IIQQQQ", 7, 8, 0x100, 0x100, 4, 0) + b"endless!"
    dump = read(header() + record(0, 1, body) + load(2, 0x200, 8, 1, b"n" * (1 << 20)))
    assert dump.find(0x100) == ("endless!"[:4], 0)
    assert dump.find(0x200) == ("n" * 4097, 0)  # one more than is shown


def test_names_that_are_not_utf8_are_kept():
    assert read(header() + load(1, 0x100, 8, 0, b"a\xff<b>\n;")).find(0x100) == ("a\\xff<b>\n;", 0)


VALID = header() + b"".join(
    [debug_info(1, 0x100, [(0x100, 1, b"x")]), load(2, 0x100, 8, 0), move(3, 0x100, 0x200, 8, 0),
     unwinding_info(4), load(5, 0x108, 8, 1, b"g"), close(6)]
)  # fmt: skip


@given(st.data())
def test_any_bytes_instead_of_some(data):
    at = data.draw(st.integers(0, len(VALID)))
    other = data.draw(st.binary(max_size=24))
    dump = read(VALID[:at] + other + VALID[at + len(other) :])
    for address in (0, 0x100, 0x200, (1 << 64) - 1):
        assert dump.find(address) is None or dump.find(address)[0]


@given(st.lists(st.tuples(*[st.integers(0, (1 << 64) - 1)] * 3), max_size=6), st.integers(0, 400))
def test_any_numbers_read_at_once_or_in_two_steps(rows, cut):
    data = header() + b"".join(
        load(time, start, size, n, b"f%d" % n, code=b"")
        for n, (time, start, size) in enumerate(rows)
    )
    whole = read(data)
    parts = grow(read(data[:cut]), data)
    assert len(whole) == len(parts) == len(rows)
    for _, start, _ in rows:
        assert whole.find(start) == parts.find(start)


def test_a_file_of_nothing_but_records_is_read_to_its_two_millionth(monkeypatch):
    monkeypatch.setattr("purebpf.symbols.jitdump._MOST_RECORDS", 3)
    dump = read(header() + b"".join(load(at, at << 4, 1, at) for at in range(5)))
    assert len(dump) == 3
    assert dump.problem.endswith("more than purebpf keeps")


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/tmp/jit-4711.dump", True),
        ("jit-1.dump", True),
        ("/home/me/.debug/jit/java-jit-20260101.XXabc/jit-12.dump", True),
        ("/tmp/jit-.dump", False),
        ("/tmp/jit-1.dump.so", False),
        ("/tmp/perf-1.map", False),
        ("", False),
    ],
)
def test_names_of_files(path, is_one):
    assert is_jitdump_name(path) is is_one
