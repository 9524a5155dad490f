"""Events counted in a table, which is printed at the end as text or JSON. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

from purebpf.cli.event_lines import fit, json_lines, json_loss
from purebpf.results import Cause, Loss
from purebpf.results.model.spelling import count_text

__all__ = ["EventTable", "spell_reasons"]

Event = TypeVar("Event")
Key = TypeVar("Key")
Row = TypeVar("Row")


class EventTable(ABC, Generic[Event, Key, Row]):
    """A `Printer` that counts events in rows, and prints the first rows at the end.

    Args:
        top: rows to print; None: all.
        format: "text" or "json".
    """

    room: ClassVar[int] = 1 << 16
    """Rows that there is room for, in some 40 MB."""
    header: ClassVar[str]

    def __init__(self, *, top: int | None = None, format: str = "text") -> None:  # noqa: A002 - as the option is called
        self._top = top
        self._format = format
        self._width: int | None = None
        self._rows: dict[Key, Row] = {}
        self._dropped = 0

    def begin(self, width: int | None) -> Iterable[str]:
        """Nothing yet."""
        self._width = width
        return ()

    def show(self, events: Iterable[Event]) -> Iterable[str]:
        """Nothing: events are counted."""
        self._dropped += sum(not self._add(event) for event in events)
        return ()

    def end(self, loss: Loss) -> Iterator[str]:
        """The table."""
        ranked = self._rank()
        rows = ranked[: self._top]
        if self._format == "json":
            yield from json_lines(self._document(key, row) for key, row in rows)
            yield from json_loss(loss)
            return
        if not rows and not self._dropped and (empty := self._empty()):
            yield f"{empty}\n"
            return
        yield f"{self.header}\n"
        for key, row in rows:
            yield f"{self._line(key, row)}\n"
        if left := len(ranked) - len(rows):
            yield fit(f"... and {left} more", self._width) + "\n"

    def losses(self) -> tuple[Cause, ...]:
        """Events that the table has no room for."""
        warning = count_text(
            self._dropped, f"events were dropped: the table was full, at {self.room} rows"
        )
        return (Cause("rows_full", self._dropped, warning),)

    @abstractmethod
    def _add(self, event: Event) -> bool:
        """Count an event; return False if there is no room for its row."""

    @abstractmethod
    def _rank(self) -> Sequence[tuple[Key, Row]]:
        """Return all rows, the most important first."""

    @abstractmethod
    def _line(self, key: Key, row: Row) -> str:
        """Return a row as text that fits the width."""

    @abstractmethod
    def _document(self, key: Key, row: Row) -> dict[str, object]:
        """Return a row for JSON."""

    def _empty(self) -> str:
        """Return the text in place of a table without rows; "" for the header alone."""
        return ""


def spell_reasons(counts: Counter[str]) -> str:
    """Return the most frequent reason, and how many others there are: `ENOENT +2`."""
    ranked = counts.most_common()
    if not ranked:
        return "-"
    return ranked[0][0] + (f" +{len(ranked) - 1}" if len(ranked) > 1 else "")
