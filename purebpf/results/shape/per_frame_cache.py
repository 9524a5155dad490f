"""Makes a writer's entry for each frame once, and remembers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from purebpf.results.model.interned_stack import Numbered
from purebpf.results.model.profile import Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["Entries"]

Made = TypeVar("Made")


class Entries(Generic[Made]):
    """`make(entry)` of every entry of many stacks: its name, a number, a line.

    Stacks share their entries, so an entry is remembered by its identity: hashing one costs ten
    times as much, and a profile has millions. If a stack has a table, the whole table is converted
    when its first stack comes. The arguments of `of` must live as long as this.
    """

    def __init__(self, make: Callable[[Frame | Unknown], Made]) -> None:
        self._make = make
        self._made: dict[int, Made] = {}
        self._tables: dict[int, list[Made]] = {}

    def of(self, stack: Stack) -> list[Made]:
        """Return the results for a stack's entries, in its order."""
        if isinstance(stack, Numbered):
            return self._look_up(stack)
        made = self._made
        try:
            return [*map(made.__getitem__, map(id, stack))]
        except KeyError:
            for entry in stack:
                if id(entry) not in made:
                    made[id(entry)] = self._make(entry)
            return [*map(made.__getitem__, map(id, stack))]

    def _look_up(self, stack: Numbered) -> list[Made]:
        made = self._tables.get(id(stack.table))
        if made is None:
            made = self._tables[id(stack.table)] = [*map(self._make, stack.table)]
        return [*map(made.__getitem__, stack.numbers)]
