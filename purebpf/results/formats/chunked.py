"""Long texts a piece at a time, without one string for the whole text or one for each item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

__all__ = ["join"]

_ITEMS = 1 << 14
"""How many items make a piece."""


def join(items: Iterable[str], separator: str) -> Iterator[str]:
    """The items with a separator between them, as pieces."""
    items = iter(items)
    before = ""
    while some := separator.join(islice(items, _ITEMS)):
        yield before
        yield some
        before = separator
