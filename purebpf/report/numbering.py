"""Numbers instead of frames: what every format with a table of frames begins with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from purebpf.report.entries import Entries
from purebpf.report.profile import Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["Numbering"]

Key = TypeVar("Key", bound=Hashable)
Number = TypeVar("Number")


class Numbering(Generic[Key, Number]):
    """A number for each different `key(entry)`, in the order in which they come, from 0.

    What `of` was given must live as long as this (`Entries`).

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
        self._spell = spell
        self._entries = Entries(lambda entry: self.number(key(entry)))

    def of(self, stack: Stack) -> list[Number]:
        """The numbers of a stack's entries, in its order."""
        return self._entries.of(stack)

    def number(self, key: Key) -> Number:
        """The number of a key, which need not be in a stack."""
        found = self.table.get(key)
        if found is None:
            found = self.table[key] = self._spell(len(self.table))
        return found

    def __iter__(self) -> Iterator[Key]:
        """Every key, in the order of the numbers."""
        return iter(self.table)
