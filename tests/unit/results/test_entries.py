"""What is made of an entry is made once, of whichever stacks it is in."""

from __future__ import annotations

from array import array

from purebpf.results.model.interned_stack import Numbered
from purebpf.results.shape.per_frame_cache import Entries
from purebpf.symbols.frame import Address, Frame, Unknown

A, B, C = (Frame(name, 0, "app", Address(1), "user") for name in "abc")


def test_an_entry_is_made_once() -> None:
    asked = []

    def make(entry: Frame | Unknown) -> str:
        assert isinstance(entry, Frame)
        asked.append(entry.name)
        return entry.name.upper()

    entries = Entries(make)
    table: list[Frame | Unknown] = [C, A]
    assert entries.of(()) == []
    assert entries.of((A, B, A)) == ["A", "B", "A"]
    assert entries.of((B, A)) == ["B", "A"]
    assert entries.of(Numbered(table, array("I", [0, 1, 1]))) == ["C", "A", "A"]
    assert entries.of(Numbered(table, array("I", [1]))) == ["A"]
    assert asked == ["a", "b", "c", "a"]  # once, and once more for a table


def test_the_list_is_the_callers() -> None:
    entries = Entries(lambda entry: entry)
    entries.of((A, B)).clear()
    assert entries.of((A, B)) == [A, B]
