"""Claims added up, and printed."""

from __future__ import annotations

import csv
import io
import json

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.abi.perf import PERF_EVENT_ATTR  # noqa: E402
from purebpf.dataflow.claims import Claim  # noqa: E402
from purebpf.dataflow.code import Access  # noqa: E402
from purebpf.dataflow.slab_evidence import Verdict  # noqa: E402
from purebpf.dataflow.types import Kind, Member, Type  # noqa: E402
from purebpf.results import Loss  # noqa: E402
from purebpf.tools.types.options import parse  # noqa: E402
from purebpf.tools.types.recorded import points_at_cause  # noqa: E402
from purebpf.tools.types.render import closing_lines, render, render_struct  # noqa: E402
from purebpf.tools.types.result import DataTypes, Tally  # noqa: E402

LONG = Type(Kind.SCALAR, "long", 8)
READ, UPDATE = Access(reads=True, writes=False, size=8), Access(reads=True, writes=True, size=8)


def pair() -> Type:
    """Another type of the same name and layout, as every unit has its own."""
    made = Type(Kind.STRUCT, "pair", 24)
    made.members = (Member("left", 0, LONG), Member("right", 16, LONG))
    return made


def claim(
    of: Type, member: str, offset: int, access: Access = READ, *, inferred: bool = False
) -> Claim:
    return Claim(of, "pair", member, offset, 8, access, inferred)


def result() -> DataTypes:
    tally = Tally()
    tally.add(claim(pair(), "left", 0), "f", 30)
    tally.add(claim(pair(), "left", 0, UPDATE), "g", 20)
    array = Type(Kind.ARRAY)
    array.target, array.count = pair(), 4
    tally.add(claim(array, "[].right", 16, inferred=True), "g", 10)
    tally.add("no memory operand", "f", 40)
    return tally.finish("cpu-clock", Loss())


def test_units_and_arrays_add_up_to_one_struct() -> None:
    found = result()
    (struct,) = found.structs
    assert (struct.samples, struct.size, found.typed, found.inferred) == (60, 24, 60, 10)
    left, right = struct.members
    assert (left.name, left.samples, left.reads, left.writes) == ("left", 50, 50, 20)
    assert left.functions == {"f": 30, "g": 20}
    assert (right.name, right.offset, right.inferred) == ("right", 16, 10)
    assert found.reasons == {"no memory operand": 40}


def test_a_struct_of_another_layout_is_another_row() -> None:
    tally = Tally()
    other = pair()
    other.members = (*other.members, Member("more", 8, LONG))
    tally.add(claim(pair(), "left", 0), "f", 2)
    tally.add(claim(other, "left", 0), "f", 1)
    assert [struct.samples for struct in tally.finish("", Loss()).structs] == [2, 1]


def test_the_table() -> None:
    assert list(render(result(), "text", "member")) == [
        " SHARE  SAMPLES OFFSET  SIZE LINE R/W STRUCT, then MEMBER                     FUNCTIONS\n",
        " 60.0%       60           24          pair\n",
        " 50.0%       50      0     8    0 r/w   .left                              f, g\n",
        " 10.0%       10     16     8    0 r     .right                             g\n",
    ]
    assert "    g: .left .right" in "".join(render(result(), "text", "function"))


def test_the_layout_has_holes_and_lines() -> None:
    (struct,) = result().structs
    text = "".join(render_struct(struct, 100))
    assert text == (
        "pair: 24 bytes, 1 cache lines, 60.0% of all samples\n"
        " SHARE  SAMPLES OFFSET  SIZE R/W MEMBER\n"
        "       --- cache line 0: 60.0%\n"
        " 50.0%       50      0     8 r/w long left\n"
        "                     8     8     (hole)\n"
        " 10.0%       10     16     8 r   long right\n"
    )


def test_json_and_csv_have_all_numbers() -> None:
    struct, total = (json.loads(line) for line in render(result(), "json", "member"))
    assert struct["members"][0]["functions"] == {"f": 30, "g": 20}
    assert (total["samples"], total["typed"], total["untyped"]) == (
        100,
        60,
        {"no memory operand": 40},
    )
    rows = list(csv.DictReader(io.StringIO("".join(render(result(), "csv", "member")))))
    assert [(row["member"], row["percent"]) for row in rows] == [
        ("left", "50.00"),
        ("right", "10.00"),
    ]


def test_the_closing_lines_add_up() -> None:
    first, *reasons, event = closing_lines(result())
    assert first == (
        "typed: 60.0% of 100 samples"
        " (10.0% inferred: elements of arrays, and pointers known by a later use)"
    )
    assert reasons == ["   40.0% no memory operand"]
    assert "instruction before" in event
    assert list(closing_lines(Tally().finish("", Loss()))) == []


@pytest.mark.parametrize(
    ("kind", "config", "precise_ip", "expected"),
    [
        (1, 0, 3, False),  # cpu-clock, as perf opens it
        (1, 2, 0, True),  # page-faults
        (1, 3, 0, False),  # context-switches
        (0, 0, 0, False),  # cycles
        (0, 0, 1, False),
        (4, 0x1CD, 2, True),  # a raw event of the PMU
    ],
)
def test_events_that_point_at_their_cause(
    kind: int, config: int, precise_ip: int, expected: bool
) -> None:
    attr = PERF_EVENT_ATTR.pack(type=kind, config=config, precise_ip=precise_ip)
    assert points_at_cause(attr) is expected


def test_a_file_excludes_targets() -> None:
    assert parse(["-i", "perf.data", "-e", "cycles"])[1].path == "perf.data"
    for words in (["-i", "x", "-p", "1"], ["-i", "x", "3"], ["-e", "cycles", "3"]):
        with pytest.raises(SystemExit):
            parse(words)


def test_options() -> None:
    options, view = parse(["--struct", "pair", "-F", "499", "3"])
    assert (options.frequency, options.duration_s, view.struct, view.by) == (
        499,
        3,
        "pair",
        "member",
    )
    with pytest.raises(SystemExit):
        parse(["--by", "line"])


def test_the_verdicts_of_slab_caches_have_a_line() -> None:
    tally = Tally()
    for verdict, samples in ((Verdict.RIGHT, 6), (Verdict.WRONG, 1), (Verdict.TYPED, 2)):
        tally.add("on the stack", "walk", samples)
        tally.judge(verdict, samples)
    tally.add("on the stack", "walk", 1)
    tally.judge(Verdict.NONE, 1)
    judged = tally.finish("cpu-clock", Loss())
    (line,) = (line for line in closing_lines(judged) if line.startswith("slab caches"))
    assert line.startswith("slab caches: the types of 6 of the 7 samples that they can judge agree")
    assert line.endswith("; 20.0% have their type from the cache")
    (text,) = list(render(judged, "json", "struct"))[-1:]
    assert json.loads(text)["slabs"] == {"right": 6, "wrong": 1, "typed": 2}
    assert not any(line.startswith("slab") for line in closing_lines(result()))
