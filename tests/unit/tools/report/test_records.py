"""Records of programs as lines, as JSON, and counted by a member."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from purebpf.errors import FormatError
from purebpf.observe.saved.program_records import ProgramRecord
from purebpf.tools.report.records import (
    NoSuchMemberError,
    count_by,
    json_counts,
    json_lines,
    lines,
    table,
)
from purebpf.wire.perf_data_features import pack_btf, unpack_btf


class Place(NamedTuple):
    cpu: int
    comm: str


class Call(NamedTuple):
    number: int
    place: Place
    data: bytes = b"\x01\xff"


def record(value: Any, event: str = "calls") -> ProgramRecord:
    return ProgramRecord(event, 12_000_345_678, 1, 42, 43, "a\x1b", value)


CALLS = [record(Call(n, Place(n % 3, "sh"))) for n in range(7)]


def test_a_line_has_all_members_and_no_control_characters() -> None:
    assert list(lines(CALLS[:1])) == [
        "           TIME CPU     PID     TID COMM            RECORD\n",
        (
            "      12.000345   1      42      43 a?              "
            'calls: number=0 place={cpu=0 comm="sh"} data=01ff\n'
        ),
    ]


def test_records_without_a_type_are_bytes() -> None:
    (_, line) = lines([record(b"\x00\x10")])
    assert line.endswith("calls: 0010\n")


def test_json_has_the_structs() -> None:
    (line,) = json_lines(CALLS[1:2])
    assert json.loads(line) == {
        "event": "calls", "time_ns": 12_000_345_678, "cpu": 1, "pid": 42, "tid": 43,
        "comm": "a\x1b", "value": {"number": 1, "place": {"cpu": 1, "comm": "sh"}, "data": "01ff"},
    }  # fmt: skip


def test_an_address_is_text_in_json() -> None:
    (line,) = json_lines([record(Call(0xFFFFFFFF81214B90, Place(0, "sh")))])
    assert json.loads(line)["value"]["number"] == "0xffffffff81214b90"


def test_the_most_frequent_value_comes_first() -> None:
    counts = count_by([*CALLS, record(b"x", "others")], "place.cpu")
    assert list(table(counts, "place.cpu")) == [
        "calls: 7 records by place.cpu\n",
        "  RECORDS  SHARE PLACE.CPU\n",
        "        3  42.9% 0\n",
        "        2  28.6% 1\n",
        "        2  28.6% 2\n",
    ]
    (line,) = json_counts(counts, "place.cpu")
    assert json.loads(line)["counts"][0] == {"value": "0", "records": 3}


def test_an_unknown_member_names_those_that_exist() -> None:
    with pytest.raises(NoSuchMemberError, match="known: number, place, data"):
        count_by(CALLS, "size")
    assert count_by([], "size") == {}


def test_types_in_a_file_are_read_back() -> None:
    packed = pack_btf([(7, b"abc"), (9, b"")])
    assert unpack_btf(packed) == ((7, b"abc"), (9, b""))
    with pytest.raises(FormatError):
        unpack_btf(packed[:-9])
