"""Columns of a time line. Pure."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.services.fleet.selection import Selection

__all__ = ["Steps", "steps_of"]

_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US


class Steps(NamedTuple):
    """`number` columns of `length_us` from `start_us` on, in microseconds since 1970."""

    start_us: int
    length_us: int
    number: int

    @property
    def are_hours(self) -> bool:
        """True if roll-ups, which have whole hours, can answer."""
        return self.length_us % _HOUR_US == 0

    def column(self, at_us: int) -> int:
        """The number of the column that a time is in."""
        return min(self.number - 1, max(0, (at_us - self.start_us) // self.length_us))


def steps_of(selection: Selection, most: int) -> Steps:
    """At most so many columns: whole minutes, as windows are; from half a day on whole hours."""
    range_us = selection.until_us - selection.since_us
    length_us = -(-range_us // (most * _MINUTE_US)) * _MINUTE_US
    if range_us >= 12 * _HOUR_US:
        length_us = -(-length_us // _HOUR_US) * _HOUR_US
    start_us = selection.since_us // length_us * length_us
    return Steps(start_us, length_us, -(-(selection.until_us - start_us) // length_us))
