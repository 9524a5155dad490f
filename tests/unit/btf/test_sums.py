"""Values of per-CPU maps, added up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf import summed
from purebpf.btf.codec.records import record_class


class State(IntEnum):
    IDLE = 0
    BUSY = 1


class Stats(NamedTuple):
    packets: int
    load: float
    slots: tuple[int, ...]
    name: str


@dataclass
class Counters:
    hits: int
    state: State


def test_structs_are_added_field_by_field() -> None:
    values = (Stats(1, 0.5, (1, 2), "eth0"), Stats(10, 0.25, (3, 4), "eth0"))
    assert summed(values) == Stats(11, 0.75, (4, 6), "eth0")
    record: Any = record_class("stats", ["bytes", "_from"])
    total = summed([record(2, (record(1, 1),)), record(3, (record(5, 7),))])
    assert type(total) is record
    assert total == record(5, (record(6, 8),))
    assert summed([Counters(1, State.BUSY), Counters(2, State.BUSY)]) == Counters(3, State.BUSY)


@given(st.lists(st.lists(st.integers(), min_size=3, max_size=3), min_size=1))
def test_numbers_and_arrays(values: list[list[int]]) -> None:
    assert summed(values) == [sum(column) for column in zip(*values, strict=True)]
    assert summed(row[0] for row in values) == sum(row[0] for row in values)


def test_text_that_differs_cannot_be_added() -> None:
    with pytest.raises(TypeError, match="'eth0' and 'eth1' of name cannot be added"):
        summed((Stats(1, 0, (), "eth0"), Stats(1, 0, (), "eth1")))
    with pytest.raises(TypeError, match=r"True and False of \[1\] cannot be added"):
        summed(((1, True), (1, False)))
    with pytest.raises(TypeError, match=r"State.IDLE.*of state"):
        summed([Counters(1, State.IDLE), Counters(2, State.BUSY)])


def test_there_has_to_be_something() -> None:
    with pytest.raises(ValueError, match="there are no values"):
        summed([])
    with pytest.raises(ValueError, match=r"shorter|argument 2"):
        summed([(1, 2), (1,)])
