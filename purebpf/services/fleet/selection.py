"""The samples of a question: a range of time, and conditions. Pure."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.errors import PurebpfError
from purebpf.services.fleet.duck import quote
from purebpf.services.fleet.rows import KINDS

__all__ = ["COLUMNS", "Selection", "SelectionError", "parse_range"]

COLUMNS = ("host", "service", "version")
"""What samples carry themselves; the rest is in their series."""
_OF_SERIES = ("namespace", "pod", "container", "container_id", "unit", "comm")
_HOUR_US = 3_600_000_000
_LATEST_US = 7_258_118_400_000_000
"""The year 2200: later ones do not fit into 64 bits of nanoseconds."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class SelectionError(PurebpfError):
    """A question without a meaning; the text says why."""


class Selection(NamedTuple):
    """Samples of a kind in [since, until), in microseconds since 1970, UTC.

    `where` has a (name, value) for each condition: a column of the samples or the series, else a
    label.
    """

    since_us: int
    until_us: int
    kind: str = "cpu"
    where: tuple[tuple[str, str], ...] = ()

    @property
    def needs_series(self) -> bool:
        """True if a condition is about more than the samples' own columns."""
        return any(name not in COLUMNS for name, _ in self.where)

    @property
    def needs_hosts(self) -> bool:
        """True if a roll-up cannot answer, because it does not have hosts."""
        return any(name not in COLUMNS[1:] for name, _ in self.where)

    @property
    def breadth(self) -> float:
        """An estimate of how much is asked: seconds, of which a condition leaves an eighth."""
        return (self.until_us - self.since_us) / 1e6 / (1 << 3 * len(self.where))

    def condition(self, *, time: str = "ts") -> str:
        """SQL about a row of samples."""
        parts = [f"{time} >= {timestamp(self.since_us)}", f"{time} < {timestamp(self.until_us)}"]
        parts += [f"{name} = {quote(value)}" for name, value in self.where if name in COLUMNS]
        if self.needs_series:
            parts.append(f"series in (select series from series where {self._of_series()})")
        return " and ".join(parts)

    def _of_series(self) -> str:
        return " and ".join(
            f"{name} = {quote(value)}"
            if name in _OF_SERIES
            else f"labels[{quote(name)}] = {quote(value)}"
            for name, value in self.where
            if name not in COLUMNS
        )


def timestamp(us: int) -> str:
    """A time as SQL."""
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(us / 1e6, UTC)
    return f"timestamp '{when:%Y-%m-%d %H:%M:%S}'"


def parse_range(since: str, until: str, now_s: float) -> tuple[int, int]:
    """A range of time, in microseconds.

    Args:
        since: `90m` ago, `now`, or a time of ISO 8601, in UTC where it names no zone.
        until: the same.
        now_s: the present time.

    Raises:
        SelectionError: it is not a range.
    """
    start, end = (_check_time(text, now_s) for text in (since, until))
    if start >= end:
        raise SelectionError(f"the range from {since} until {until} has no time in it")
    return start, end


def _check_time(text: str, now_s: float) -> int:
    """A time, if it is one that a store can have."""
    try:
        time_us = _time_us(text, now_s)
    except OverflowError:
        time_us = -1
    if not 0 <= time_us <= _LATEST_US:
        raise SelectionError(f"{text!r} is a time before 1970 or after 2200")
    return time_us


def _time_us(text: str, now_s: float) -> int:
    from datetime import UTC, datetime

    if text == "now":
        return round(now_s * 1e6)
    if text[-1:] in _UNITS and text[:-1].replace(".", "", 1).isdecimal():
        return round((now_s - float(text[:-1]) * _UNITS[text[-1]]) * 1e6)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise SelectionError(
            f"{text!r} is not a time: 90m, 24h, 7d (ago), now, 2026-11-23T07:00"
        ) from None
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e6)


def check_kind(kind: str) -> str:
    """A kind that there is."""
    if kind not in KINDS:
        raise SelectionError(f"there is no kind of samples {kind!r}: {', '.join(KINDS)}")
    return kind
