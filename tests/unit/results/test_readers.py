"""Profiles of other tools: pprof, speedscope, perf script and collapsed stacks."""

from __future__ import annotations

import gzip
import json as reader
import struct
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.errors import FormatError
from purebpf.results import Labels, Profile
from purebpf.results.formats import (
    folded,
    legacy_pprof,
    perf_script,
    pprof,
    pprof_reader,
    speedscope,
    speedscope_reader,
)
from purebpf.results.formats.protobuf import integer, message, varint
from purebpf.symbols.frame import Unknown
from tests.support.builders import profiles

SOME = settings(max_examples=60, deadline=None)


def lines(profile: Profile) -> list[str]:
    return list(folded.lines(profile, annotations=True))


def of_pprof(profile: Profile) -> Profile:
    return pprof_reader.parse(gzip.decompress(pprof.document(profile)))


# pprof


def test_what_we_wrote_as_pprof_is_read_again() -> None:
    before = profiles.example()
    del before.about["frequency_hz"]  # with it, pprof shows time
    after = of_pprof(before)
    assert (after.total, after.unit, after.title) == (before.total, "samples", before.title)
    assert lines(after) == lines(before)
    assert {row.labels for row in after.rows()} == {row.labels for row in before.rows()}
    work = next(
        entry
        for row in after.rows()
        for entry in row.user or ()
        if not isinstance(entry, Unknown) and entry.name == "work"
    )
    assert (work.module, work.build_id, work.file_offset) == ("/srv/app", "ab12", 0x200)
    assert after.about["elapsed_s"] == 2.0


@SOME
@given(profiles.profiles())
def test_no_weight_is_lost_in_pprof(profile: Profile) -> None:
    after = of_pprof(profile)
    assert (after.total, after.unit) == (profile.total, profile.unit)


def _strings(*texts: str) -> bytes:
    return b"".join(message(6, text.encode()) for text in ("", *texts))


def _type(kind: int, unit: int) -> bytes:
    return message(1, integer(1, kind) + integer(2, unit))


def _go(*, default: int = 0, ids: bytes = message(1, varint(1) + varint(2))) -> bytes:
    """A profile as Go writes them: two values for each sample, and inlined functions."""
    sample = ids + message(2, varint(3) + varint(30_000_000))
    mapping = integer(1, 1) + integer(2, 0x400000) + integer(3, 0x500000) + integer(5, 5)
    inlined = message(4, integer(1, 1) + integer(2, 12)) + message(4, integer(1, 2) + integer(2, 7))
    return (
        _type(1, 2) + _type(3, 4) + message(2, sample) + message(3, mapping)
        + message(4, integer(1, 1) + integer(2, 1) + integer(3, 0x400100) + inlined)
        + message(4, integer(1, 2) + integer(2, 1) + integer(3, 0x400200))
        + message(5, integer(1, 1) + integer(2, 6) + integer(4, 8))
        + message(5, integer(1, 2) + integer(2, 7) + integer(4, 8))
        + _strings("samples", "count", "cpu", "nanoseconds", "/srv/prog", "main.leaf", "main.main",
                   "main.go")
        + integer(14, default)
    )  # fmt: skip


@pytest.mark.parametrize("ids", [message(1, varint(1) + varint(2)), integer(1, 1) + integer(1, 2)])
def test_the_last_value_counts_unless_the_file_names_another(ids: bytes) -> None:
    found = pprof_reader.parse(_go(ids=ids))
    (row,) = found.rows()
    assert (found.unit, row.weight) == ("ns", 30_000_000)
    assert row.labels.comm == "prog"
    assert row.user is not None
    leaf, main, nameless = row.user
    assert not isinstance(leaf, Unknown)
    assert not isinstance(main, Unknown)
    assert (leaf.name, leaf.kind, leaf.file, leaf.line) == ("main.leaf", "inlined", "main.go", 12)
    assert (main.name, main.kind, main.line, main.file_offset) == ("main.main", "user", 7, 0x100)
    assert isinstance(nameless, Unknown)
    assert nameless.file_offset == 0x200
    samples = pprof_reader.parse(_go(default=1))
    assert (samples.unit, samples.total) == ("samples", 3)


def test_samples_of_time_are_read_as_time() -> None:
    before = profiles.example()
    assert before.about["frequency_hz"] == 99
    after = of_pprof(before)
    assert (after.unit, after.total) == ("ns", before.total * (10**9 // 99))


@SOME
@given(st.data())
def test_a_damaged_pprof_is_refused(data: st.DataObject) -> None:
    whole = bytearray(_go())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    try:
        profile = pprof_reader.parse(bytes(whole[:cut]), "x.pb")
    except FormatError:
        return
    lines(profile)


@pytest.mark.parametrize("values", [0, 1, 3])
def test_a_sample_with_another_number_of_values_than_types_is_refused(values: int) -> None:
    """The value of one type was shown as that of another (google/pprof #639)."""
    sample = b"".join(integer(2, 7) for _ in range(values))
    with pytest.raises(FormatError, match=f"a sample has {values} values, and the file 2 types"):
        pprof_reader.parse(_go() + message(2, sample), "x.pb")


def test_a_number_in_the_place_of_a_text_is_refused() -> None:
    """`bytes(number)` would be that many zeros."""
    with pytest.raises(FormatError, match="a number where a text is expected"):
        pprof_reader.parse(_go() + integer(6, 1 << 40), "x.pb")


# speedscope


def test_what_we_wrote_for_speedscope_is_read_again() -> None:
    before = profiles.example()
    text = speedscope.document(before)
    assert speedscope_reader.looks_like(text)
    after = speedscope_reader.parse(text)
    assert (after.total, after.unit) == (before.total, "samples")
    marked = Counter[str]()
    for line in folded.lines(before):
        path, _, weight = line.rpartition(" ")
        marked[path] += int(weight)
    found = Counter[str]()
    for line in folded.lines(after):
        path, _, weight = line.rpartition(" ")
        found[path] += int(weight)
    assert found == marked


def _evented(**more: object) -> str:
    events = [
        *({"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 1, "at": 2}),
        *({"type": "C", "frame": 1, "at": 5.5}, {"type": "C", "frame": 0, "at": 6}),
    ]
    part = {"type": "evented", "name": "thread 1", "unit": "milliseconds", "startValue": 0,
            "endValue": 6, "events": events}  # fmt: skip
    tree = {
        "$schema": speedscope.SCHEMA,
        "shared": {"frames": [{"name": "main"}, {"name": "leaf", "file": "a.py", "line": 3}]},
        "profiles": [part],
    }
    return reader.dumps(tree | more)


def test_time_between_events_is_that_of_the_stack() -> None:
    found = speedscope_reader.parse(_evented())
    assert found.unit == "ns"
    assert lines(found) == ["thread 1;main 2500000\n", "thread 1;main;leaf 3500000\n"]


@pytest.mark.parametrize(
    "more",
    [
        {"profiles": []},
        {"profiles": 5},
        {"shared": {"frames": []}},
        {"profiles": [{"type": "sampled", "unit": "parsecs", "samples": [], "weights": []}]},
        {"profiles": [{"type": "sampled", "unit": "none", "samples": [[9]], "weights": [1]}]},
        {"profiles": [{"type": "sampled", "unit": "none", "samples": [[0]], "weights": [-1]}]},
        {"profiles": [{"type": "sampled", "unit": "none", "samples": [[0]], "weights": [1e300]}]},
        {"profiles": [{"type": "sampled", "unit": "none", "samples": [[0]], "weights": []}]},
    ],
)
def test_a_damaged_speedscope_file_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(FormatError, match="not a speedscope file"):
        speedscope_reader.parse(_evented(**more))


def _events(*rows: tuple[str, int, object]) -> str:
    events = [{"type": type_, "frame": frame, "at": at} for type_, frame, at in rows]
    part = {"type": "evented", "name": "t", "unit": "none", "startValue": 1, "endValue": 9}
    return _evented(profiles=[part | {"events": events}])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (_events(("O", 0, 2), ("O", 1, 7), ("C", 1, 5), ("C", 0, 9)), "event 2 .* at 5, .* at 7"),
        (_events(("O", 0, 0), ("C", 0, 9)), "event 0 .* at 0, and the one before it at 1"),
        (_events(("O", 0, 2), ("O", 1, 3), ("C", 1, 5)), "'t' ends with 1 open frames"),
        (_events(("O", 0, 2), ("O", 1, 3), ("C", 0, 5), ("C", 1, 6)), "event 2 .* closes frame 0"),
        (_events(("C", 0, 2)), "event 0 .* no frame is open"),
        (_events(("O", 0, 2), ("X", 0, 3)), "event 1 .* has the type 'X'"),
        (_events(("O", -1, 2), ("C", -1, 3)), "frame -1 of 2"),
        (_events(("O", 0, 2), ("C", 0, "3")), "a time of '3'"),
        (_events(("O", 0, 2), ("C", 0, float("nan"))), "a time of nan"),
        (_evented(profiles=[{"type": "heap", "unit": "none"}]), "type 'heap'"),
        (_evented(profiles=[]), "profiles.*the file has none"),
    ],
)
def test_events_that_speedscope_refuses_are_refused(text: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        speedscope_reader.parse(text)


# perf script

SCRIPT = """\
# captured on    : Sun Nov 22 20:28:10 2026
app worker 4711/4712 [001] 15583.829040:    2004008 cpu-clock:u:
\t            1262 leaf+0x12 (/srv/app)
\t            1298 level3(int, char)+0x8 (/srv/app)
\t            1290 helper (inlined)
\tffffffff81000050 vfs_read+0x10 ([kernel.kallsyms])

swapper     0 [000] 15583.831: 1 sched:sched_switch: prev_comm=a prev_pid=0 ==> next_comm=b
\tffffffff81000060 schedule+0x10 ([kernel.kallsyms])

app worker 4711/4712 [001] 15583.839040:    2004008 cpu-clock:u:
\t            1262 leaf+0x12 (/srv/app)
\t         7f00001 [unknown] ([unknown])
"""


def test_samples_of_perf_script() -> None:
    assert perf_script.looks_like(SCRIPT)
    found = perf_script.parse(SCRIPT.split("\n"))
    assert found.about["event"] == "cpu-clock:u"
    assert found.about["other_events"] == ["sched:sched_switch: 1 sample"]
    assert {row.labels for row in found.rows()} == {Labels("app worker", 4711, 4712, 1)}
    assert lines(found) == [
        "app worker;[unknown];leaf 1\n",
        "app worker;helper;level3(int, char);leaf;vfs_read_[k] 1\n",
    ]
    leaf = found.rows()[0].user[0]  # type: ignore[index]
    assert not isinstance(leaf, Unknown)
    assert (leaf.offset, leaf.address, leaf.module) == (0x12, 0x1262, "/srv/app")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("split  5512  9.1:  1 cpu-clock:   5581 spend+0x1 (/x/split)\n", "split;spend 1\n"),
        ("a     1 \n\t 55 f (/x)\n\n", "a;f 1\n"),
        ("a 1/2 cycles: \n\t 55 f+0x1 (/x)\n", "a;f 1\n"),
        (
            ":17 17 1.5: cycles:P: \n\tffffffffffffffff [unknown] ([unknown])\n",
            ":17;[unknown]_[k] 1\n",
        ),
    ],
)
def test_fewer_fields_are_read_too(text: str, expected: str) -> None:
    assert perf_script.looks_like(text)
    assert lines(perf_script.parse(text.split("\n"))) == [expected]


@pytest.mark.parametrize(
    "text", ["a;b;c 17\n", "main 5\n", "a b 1: 2\n", "# x\nmain;f+0x1 (/x) 5\nb 3\n", "", "\n\n"]
)
def test_folded_stacks_are_not_taken_for_perf_script(text: str) -> None:
    assert not perf_script.looks_like(text)


@SOME
@given(st.text(alphabet="a1/[]:()+x;# \t\n.f0", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    perf_script.looks_like(text)
    try:
        found = perf_script.parse(text.split("\n"))
    except FormatError:
        return
    lines(found)


# Collapsed stacks of others


def test_two_counts_are_no_part_of_a_name() -> None:
    two = ["app;main;leaf 12 20", "app;main;other 30 31.5", "# comment"]
    with pytest.raises(FormatError, match=r"two counts.*purebpf diff BEFORE AFTER"):
        folded.parse(two)
    found = folded.parse([*two, "app;main 5"])  # then it is a name: the writer gives each line two
    assert found.total == 20 + 32 + 5


def test_remarks_of_austin_are_no_stacks() -> None:
    remarks = ["# austin: 3.6.0", "# interval: 100", "# mode: wall", "", "# duration: 1000"]
    stacks = ["P42;T7:7;/a/foo.py:bar:12;:GC: 100", "#x 7", "# y;main 5"]
    found = folded.parse([*remarks[:3], *stacks, *remarks[3:]])
    assert sorted(folded.lines(found)) == sorted(f"{stack}\n" for stack in stacks)


@pytest.mark.parametrize(
    "data",
    [
        b"heap_v2/524288\n  t*: 1: 1024 [0: 0]\n@ 0x1 0x2\n  t*: 1: 1024 [0: 0]\n",
        b"heap profile:      1:   100 [     1:   100] @ heapprofile\n  1: 100 [1: 100] @ 0x1\n",
        b"goroutine profile: total 7\n7 @ 0x1 0x2\n",
        b"--- contentionz 1 ---\ncycles/second = 3201000000\nsampling period = 100\n",
        b"--- symbol\nbinary=/srv/app\n0x1 f\n---\n--- profile\n",
        struct.pack("<5Q", 0, 3, 0, 10000, 0),
        struct.pack(">5I", 0, 3, 0, 10000, 0),
    ],
)
def test_a_profile_of_gperftools_is_recognized(data: bytes) -> None:
    assert "go tool pprof -proto" in legacy_pprof.why_not(data)


@pytest.mark.parametrize(
    "data", [b"", b"heap;profile 5\n", b"--- 5\n", bytes(40), b"a 0\n", b"profile: total 7\n"]
)
def test_others_are_not_taken_for_one(data: bytes) -> None:
    assert not legacy_pprof.why_not(data)


def test_marks_and_counts_of_other_profilers() -> None:
    text = (
        "java;start_thread;Main.run_[j];Main.get_[i];read_[k] 12.6\npy;main (a.py:3) 5\nx;y 0.2\n"
    )
    found = folded.parse(text.splitlines())
    assert lines(found) == [
        "py;main (a.py:3) 5\n",
        "java;start_thread;Main.run;Main.get;read_[k] 13\n",
    ]
    kinds = [entry.kind for row in found.rows()[-1:] for entry in row.user or ()]
    assert kinds == ["inlined", "user", "user"]
    with pytest.raises(FormatError, match="does not end with a count"):
        folded.parse(["a;b 1.2.3"])
