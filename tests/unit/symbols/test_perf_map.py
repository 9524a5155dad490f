"""/tmp/perf-PID.map texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols import perf_map
from purebpf.symbols.perf_map import PerfMap, perf_map_name


def test_a_line_names_a_range():
    table = PerfMap(b"7f0010 20 py::main:/srv/app.py\n0x7F0030 0x8 Lcom/a/B; run (I)V\n")
    assert len(table) == 2
    assert [table.find(at) for at in (0x7F000F, 0x7F0010, 0x7F002F, 0x7F0030, 0x7F0038)] == [
        None,
        ("py::main:/srv/app.py", 0),
        ("py::main:/srv/app.py", 31),
        ("Lcom/a/B; run (I)V", 0),
        None,
    ]


def test_what_was_generated_last_names_the_address():
    table = PerfMap(b"100 40 first\n110 10 second\n108 10 third\n")
    names = [table.find(at)[0] for at in (0x100, 0x108, 0x110, 0x117, 0x118, 0x120)]
    assert names == ["first", "third", "third", "third", "second", "first"]
    assert table.find(0x120) == ("first", 0x20)


def test_lines_that_make_no_sense_are_skipped():
    text = b"\nnonsense\n100 zz f\n10000000000000000000 1 too_long\n100 10 good\n100 10\n-1 5 x\n"
    table = PerfMap(text)
    assert len(table) == 1
    assert table.find(0x105) == ("good", 5)


def test_a_line_that_is_being_written_waits():
    assert PerfMap(b"100 10 done\n200 10 half").find(0x200) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table(text):
    table = PerfMap(text)
    assert table.find(0) is None or table.find(0)[0]


@given(st.lists(st.tuples(st.integers(0, 1 << 66), st.integers(0, 1 << 66)), max_size=8))
def test_any_numbers_are_a_table(rows):
    table = PerfMap(b"".join(b"%x %x name\n" % row for row in rows))
    for start, size in rows:
        if size and start < (1 << 64) - 1 and size < 1 << 64:  # an end must fit 64 bits too
            assert table.find(start)[0] == "name"


def test_a_container_s_process_names_its_map_after_the_pid_it_sees():
    assert perf_map_name(4711) == "perf-4711.map"
    assert perf_map_name(4711, "4711") == "perf-4711.map"
    assert perf_map_name(4711, "4711\t12\t3") == "perf-3.map"


def test_a_map_of_nothing_but_lines_is_read_to_its_two_millionth(monkeypatch):
    monkeypatch.setattr("purebpf.symbols.perf_map._MOST_LINES", 3)
    table = PerfMap(b"".join(b"%x 1 f%d\n" % (at, at) for at in range(5)))
    assert [table.find(at) for at in (2, 3)] == [("f2", 0), None]


LINES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=30)


@given(LINES, st.lists(st.integers(0, 400), max_size=8))
def test_a_map_that_grew_names_as_one_that_was_there_at_once(rows, cuts):
    text = b"".join(b"%x %x f%d\n" % (*row, number) for number, row in enumerate(rows))
    grown = PerfMap(b"")
    for cut in [*sorted(cuts), len(text)]:
        grown.grow(text[grown.size : cut])
    whole = PerfMap(text)
    assert (len(grown), grown.size, grown.tail) == (len(whole), whole.size, whole.tail)
    assert [grown.find(at) for at in range(60)] == [whole.find(at) for at in range(60)]


def test_a_map_that_grows_by_the_line_is_sorted_a_few_times_in_all(monkeypatch):
    sorted_lines = 0

    class Counted(perf_map._Part):
        def __init__(self, *arguments):
            nonlocal sorted_lines
            super().__init__(*arguments)
            sorted_lines += len(self)

    monkeypatch.setattr(perf_map, "_Part", Counted)
    table = PerfMap(b"")
    for at in range(1024):
        table.grow(b"%x 1 f%d\n" % (at, at))
    assert sorted_lines < 12 * 1024
    assert table.find(700) == ("f700", 0)


def test_growth_that_is_broken_off_leaves_the_map_as_it_was():
    table = PerfMap(b"1 1 first\n")

    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.grow(b"2 1 more\n" * perf_map._CHECKED, broken)
    assert (len(table), table.size) == (1, 10)
    table.grow(b"2 1 second\n")
    assert [table.find(at) for at in (1, 2)] == [("first", 0), ("second", 0)]
