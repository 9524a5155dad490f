"""A row of waits says when threads go through a lock one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from purebpf.results import Loss
from purebpf.tools.lock.old_waits import OldWait
from purebpf.tools.lock.render import UserJson, UserText
from purebpf.tools.lock.user_event import UserRow

ROW = UserRow(
    name="work",
    pid=0,
    tid=0,
    type="mutex",
    address=0,
    waits=100,
    open=0,
    total_ns=100_000,
    max_ns=60_000,
    timeouts=0,
    woken=100,
    wake_ns=1000,
    most_waiting=5,
    handed_on=98,
    buckets=(100,),
    stack=(),
    waker=(),
)


@pytest.mark.parametrize(
    ("changed", "is_convoy"),
    [
        ({}, True),
        ({"handed_on": 51}, True),
        ({"handed_on": 50}, False),
        ({"most_waiting": 2}, False),
        ({"waits": 2, "handed_on": 2}, False),
        ({"type": "semaphore"}, False),
    ],
)
def test_most_waits_with_others_behind_them_are_a_convoy(
    changed: dict[str, Any], is_convoy: bool
) -> None:
    assert ROW._replace(**changed).is_convoy == is_convoy


def test_a_convoy_is_said_below_its_row() -> None:
    _, line = UserText(lambda: (ROW,), "caller", others=dict).row_lines(ROW)
    assert line.strip() == "convoy: 98 % of the waits ended while up to 4 others waited on"
    assert (
        len(list(UserText(lambda: (), "caller", others=dict).row_lines(ROW._replace(waits=999))))
        == 1
    )


def test_callers_have_short_names() -> None:
    row = ROW._replace(name="Mailer::deliver(std::__cxx11::basic_string<char> const&)")
    line, *_ = UserText(lambda: (row,), "caller", others=dict).row_lines(row)
    assert line.endswith(" Mailer::deliver(string const&)")


def test_json_has_the_address_of_a_lock_in_hexadecimal() -> None:
    rows = (ROW._replace(address=0xFF_FFFF_FFFF_FFF8), ROW)
    summary, _ = map(json.loads, UserJson(lambda: rows, "lock").end(Loss()))
    assert [row["address"] for row in summary["rows"]] == ["0xfffffffffffff8", "0x0"]


def test_the_functions_that_had_the_lock_stand_below_the_row() -> None:
    row = ROW._replace(released_in=("reserve (stock.py:22)", "do_GET (stock.py:31)"))
    shown = list(UserText(lambda: (row,), "caller", others=dict).row_lines(row))
    assert shown[2:] == ["        held in reserve (stock.py:22) < do_GET (stock.py:31)"]
    gil = ROW._replace(type="GIL", released_in=())
    text = UserText(lambda: (), "caller", others=dict)
    assert "purebpf profile --gil" in "".join(text.row_lines(gil))
    assert "purebpf profile --gil" not in "".join(text.row_lines(gil)), "once is enough"


def test_a_name_without_room_has_a_line_of_its_own() -> None:
    row = ROW._replace(name="Price" * 9)
    text = UserText(lambda: (row,), "caller", others=dict)
    assert "p99" in text.header()
    list(text.begin(80))
    assert "p99" not in text.header()
    numbers, name, *_ = text.row_lines(row)
    assert numbers.endswith("mutex")
    assert name == f"        {row.name}"


def test_idle_threads_stand_below_the_waits_of_the_run() -> None:
    text = UserText(
        lambda: (ROW,), "caller", others=dict, old_waits=lambda: [OldWait(5, 8), OldWait(5, 9)]
    )
    lines = "".join(text.end(Loss())).splitlines()
    assert lines[0].startswith("   WAITS")
    assert lines[-1].startswith("2 threads wait in futex(2)")
