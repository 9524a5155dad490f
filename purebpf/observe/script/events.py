"""Events of a script as values: what a Python program gets instead of text."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from purebpf.observe.script.printer import Printer
from purebpf.script.actions import Action
from purebpf.script.output.compiled_formats import Formatter
from purebpf.tuples import NamedTuple

__all__ = ["Event", "EventPrinter", "Lost", "MapPrinted", "Printed"]


class Printed(NamedTuple):
    """A printf(), a print() of a value, or another function that prints.

    Attributes:
        text: as the command prints it.
        values: of the arguments: ints, strings, bytes, tuples, dicts.
    """

    text: str
    values: tuple[Any, ...] = ()


class MapPrinted(NamedTuple):
    """A print() of a map.

    Attributes:
        name: with the `@`.
        items: values by key, the key None without one; a histogram is a dict of counts by bucket.
            Structs and records in keys are tuples of their values.
    """

    name: str
    items: dict[Any, Any]


class Lost(NamedTuple):
    """The number of events that found no room in the ring."""

    number: int


Event = Printed | MapPrinted | Lost


def _hashable(key: Any) -> Any:
    if isinstance(key, dict):
        return tuple(map(_hashable, key.values()))
    return tuple(map(_hashable, key)) if isinstance(key, list | tuple) else key


class EventPrinter(Printer):
    """Puts events into a queue instead of writing text."""

    def __init__(self, events: deque[Event], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._events = events
        self._write = lambda text: events.append(Printed(text))

    def _compile_formats(self) -> Mapping[bytes, Formatter]:
        """Return none: an event has the values of its text."""
        return {}

    def printed(self, action: Action, text: str, values: list[Any]) -> None:
        """Queue a printf()."""
        if action.kind == "printf":
            self._events.append(Printed(text, tuple(values)))
        else:
            super().printed(action, text, values)

    def print_value(self, value: object) -> None:
        """Queue a print() of a value."""
        self._events.append(Printed(self.text_of(value), (value,)))

    def print_rows(
        self, name: str, rows: list[tuple[Any, Any]], top: int = 0, divisor: int = 0
    ) -> None:
        """Queue a print() of a map; the divisor of the text is not applied."""
        del divisor
        printed_rows = rows[-top:] if top else rows
        self._events.append(
            MapPrinted(name, {_hashable(key): value for key, value in printed_rows})
        )

    def print_all(self) -> None:
        """Queue all maps that have values."""
        for name in sorted(self._maps.infos):
            if rows := self._maps.rows(name):
                self.print_rows(name, rows)
