"""The question in an address: its query string as a question, and questions as addresses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

from purebpf.services.fleet.request import Query
from purebpf.services.fleet.selection import Selection, SelectionError

__all__ = ["AGAINST", "Asked", "earlier", "iso"]

_MOST = 200
_COLUMNS = {"service": "service", "build": "version", "host": "host"}
AGAINST = {
    "before": "the time before",
    "day": "a day before",
    "week": "a week before",
    "build": "another build",
}
_DAYS = {"day": 1, "week": 7}
_DAY_US = 86_400_000_000


class Asked(NamedTuple):
    """The fields of the form, as typed; `label` is NAME=VALUE, `than` the build to compare with."""

    since: str = "1h"
    until: str = "now"
    kind: str = "cpu"
    service: str = ""
    build: str = ""
    host: str = ""
    label: str = ""
    against: str = "before"
    than: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Asked:
        """Parse the names and values of a query string; unknown fields are ignored.

        Raises:
            SelectionError: a value is too long, or there is no such comparison.
        """
        fields = {name: given[name].strip() for name in cls._fields if given.get(name, "").strip()}
        for name, value in fields.items():
            if len(value) > _MOST:
                raise SelectionError(f"{name} has {len(value)} characters: {_MOST} at most")
        asked = cls(**fields)
        if asked.against not in AGAINST:
            raise SelectionError(f"there is no comparison with {asked.against!r}")
        return asked

    def query(self) -> Query:
        """Return the selected samples.

        Raises:
            SelectionError: the label has no value.
        """
        where = [
            (column, value) for name, column in _COLUMNS.items() if (value := getattr(self, name))
        ]
        if self.label:
            name, equals, value = self.label.partition("=")
            if not equals or not name:
                raise SelectionError(f"the label {self.label!r} is not NAME=VALUE")
            where.append((name, value))
        return Query(self.since, self.until, self.kind, tuple(where))

    def address(self, path: str, **changes: str) -> str:
        """A link: this question, or with changes, at a path."""
        fields = self._replace(**changes)._asdict()
        default = Asked()._asdict()
        chosen = {name: value for name, value in fields.items() if value != default[name]}
        return f"{path}?{urlencode(chosen)}" if chosen else path


def earlier(selection: Selection, asked: Asked) -> Selection:
    """The side that a selection is compared with.

    Raises:
        SelectionError: another build was requested without its name.
    """
    if asked.against == "build":
        if not asked.than:
            raise SelectionError("compare with which build? The form's last field has to say")
        where = [pair for pair in selection.where if pair[0] != "version"]
        return selection._replace(where=(*where, ("version", asked.than)))
    length_us = selection.until_us - selection.since_us
    back_us = _DAYS.get(asked.against, 0) * _DAY_US or length_us
    return selection._replace(
        since_us=selection.since_us - back_us, until_us=selection.until_us - back_us
    )


def iso(us: int) -> str:
    """A time as the form takes it."""
    return f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%dT%H:%M:%S}".removesuffix(":00")
