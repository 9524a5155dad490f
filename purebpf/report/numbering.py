"""Numbers instead of frames: what every format with a table of frames begins with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from purebpf.report.numbered import Numbered
from purebpf.report.profile import Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["Numbering"]

Key = TypeVar("Key", bound=Hashable)
Number = TypeVar("Number")


class Numbering(Generic[Key, Number]):
    """A number for each different `key(entry)`, in the order in which they come, from 0.

    Stacks share their entries, so an entry is remembered by its identity: hashing one costs ten
    times as much, and a profile has millions. Of a stack that has a table, the whole table is
    numbered when the first such stack comes. What `of` was given must live as long as this.

    Args:
        key: what is to have a number.
        spell: what a number is to look like.

    Attributes:
        table: each key and its number, spelled.
    """

    def __init__(
        self, key: Callable[[Frame | Unknown], Key], spell: Callable[[int], Number]
    ) -> None:
        self.table: dict[Key, Number] = {}
        self._key = key
        self._spell = spell
        self._seen: dict[int, Number] = {}
        self._tables: dict[int, list[Number]] = {}

    def of(self, stack: Stack) -> list[Number]:
        """The numbers of a stack's entries, in its order."""
        if isinstance(stack, Numbered):
            return self._renumbered(stack)
        seen = self._seen
        try:
            return [*map(seen.__getitem__, map(id, stack))]
        except KeyError:
            for entry in stack:
                if id(entry) not in seen:
                    seen[id(entry)] = self.number(self._key(entry))
            return [*map(seen.__getitem__, map(id, stack))]

    def _renumbered(self, stack: Numbered) -> list[Number]:
        numbers = self._tables.get(id(stack.table))
        if numbers is None:
            numbers = [self.number(self._key(entry)) for entry in stack.table]
            self._tables[id(stack.table)] = numbers
        return [*map(numbers.__getitem__, stack.numbers)]

    def number(self, key: Key) -> Number:
        """The number of a key, which need not be in a stack."""
        found = self.table.get(key)
        if found is None:
            found = self.table[key] = self._spell(len(self.table))
        return found

    def __iter__(self) -> Iterator[Key]:
        """Every key, in the order of the numbers."""
        return iter(self.table)
