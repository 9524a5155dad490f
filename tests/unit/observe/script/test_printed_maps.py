"""The maps at the end of a script: each is read, and its stacks are named, once."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import pytest

from purebpf.observe.script.events import EventPrinter
from purebpf.observe.script.printer import Printer
from purebpf.script.map_info import MapInfo
from purebpf.script.types import U64, Type

ROWS: dict[str, list[tuple[Any, int]]] = {"@a": [(1, 7), (2, 9)], "@b": [], "@c": [(None, 3)]}


class CountingMaps:
    """Maps of known rows that count how often they are read."""

    def __init__(self) -> None:
        self.infos = {
            name: MapInfo(name, name[1:], 10, value=Type("count", 8), key=U64)
            for name in reversed(ROWS)
        }
        self.infos["@c"].is_scalar = True
        self.reads: Counter[str] = Counter()

    def rows(self, name: str) -> list[tuple[Any, int]]:
        self.reads[name] += 1
        return ROWS[name]

    def is_zeroed(self, name: str) -> bool:
        del name
        return False


def options(maps: CountingMaps, written: list[str], *, is_json: bool) -> tuple[list[Any], Any]:
    more = {"is_json": is_json, "warn": written.append, "place": None, "most_bytes": 10}
    return [[], maps, None, written.append], more


@pytest.mark.parametrize(
    ("is_json", "wanted"),
    [
        (False, ["\n\n", "@a[1]: 7\n@a[2]: 9\n", "@c: 3\n"]),
        (True, ['{"type": "map", "data": {"@a": {"1": 7, "2": 9}}}\n',
                '{"type": "map", "data": {"@c": 3}}\n']),
    ],
)  # fmt: skip
def test_each_map_is_read_once(wanted: list[str], *, is_json: bool) -> None:
    maps, written = CountingMaps(), list[str]()
    arguments, more = options(maps, written, is_json=is_json)
    Printer(*arguments, **more).print_all()
    assert written == wanted
    assert maps.reads == {"@a": 1, "@b": 1, "@c": 1}


def test_each_map_is_read_once_for_a_program() -> None:
    maps, written = CountingMaps(), list[str]()
    arguments, more = options(maps, written, is_json=False)
    events: deque[Any] = deque()
    EventPrinter(events, *arguments, **more).print_all()
    assert [(event.name, event.items) for event in events] == [
        ("@a", {1: 7, 2: 9}), ("@c", {None: 3}),
    ]  # fmt: skip
    assert maps.reads == {"@a": 1, "@b": 1, "@c": 1}
