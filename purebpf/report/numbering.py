"""Numbers instead of frames: what every format with a table of frames begins with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from purebpf.report.profile import Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["Numbering"]

Key = TypeVar("Key", bound=Hashable)


class Numbering(Generic[Key]):
    """A number for each different `key(entry)`, in the order in which they come.

    Stacks share their entries, so an entry is remembered by its identity first: hashing one costs
    ten times as much, and a profile has millions. What `of` was given must live as long as this.

    Attributes:
        table: each key and its number.
    """

    def __init__(self, key: Callable[[Frame | Unknown], Key]) -> None:
        self.table: dict[Key, int] = {}
        self._key = key
        self._seen: dict[int, int] = {}

    def of(self, stack: Stack) -> list[int]:
        """The numbers of a stack's entries, in its order."""
        seen = self._seen
        try:
            return [seen[id(entry)] for entry in stack]
        except KeyError:
            for entry in stack:
                if id(entry) not in seen:
                    seen[id(entry)] = self.number(self._key(entry))
            return [seen[id(entry)] for entry in stack]

    def number(self, key: Key) -> int:
        """The number of a key, which need not be in a stack."""
        return self.table.setdefault(key, len(self.table))

    def __iter__(self) -> Iterator[Key]:
        """Every key, in the order of the numbers."""
        return iter(self.table)
