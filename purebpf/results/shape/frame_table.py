"""Numbers instead of frames, for every format that begins with a table of frames."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from purebpf.results.model.profile import Stack
from purebpf.results.shape.per_frame_cache import Entries
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["Numbering"]

Key = TypeVar("Key", bound=Hashable)
Number = TypeVar("Number")


class Numbering(Generic[Key, Number]):
    """A number for each different `key(entry)`, in the order of their first, from 0.

    The arguments of `of` must live as long as this (`Entries`).

    Args:
        key: returns the object to number.
        spell: formats a number's object.

    Attributes:
        table: each key and its number, spelled.
        number: the number of a key, which need not be in a stack.
    """

    def __init__(
        self, key: Callable[[Frame | Unknown], Key], spell: Callable[[int], Number]
    ) -> None:
        self.table: dict[Key, Number] = {}
        self.number = number = _numbering(self.table, spell)
        # not of `self`, which would keep itself and every entry alive until garbage is collected
        self._entries = Entries(lambda entry: number(key(entry)))

    def of(self, stack: Stack) -> list[Number]:
        """The numbers of a stack's entries, in its order."""
        return self._entries.of(stack)

    def __iter__(self) -> Iterator[Key]:
        """Every key, in the order of the numbers."""
        return iter(self.table)


def _numbering(table: dict[Key, Number], spell: Callable[[int], Number]) -> Callable[[Key], Number]:
    def number(key: Key) -> Number:
        spelled = table.get(key)
        if spelled is None:
            spelled = table[key] = spell(len(table))
        return spelled

    return number
