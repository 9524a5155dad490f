"""The basis of an answer: how many hosts, the share of their windows, and the losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from purebpf.results.model.spelling import count_text
from purebpf.services.fleet import duck
from purebpf.services.fleet.selection import Selection, timestamp

if TYPE_CHECKING:
    import duckdb

__all__ = ["Coverage", "cover"]

_CLOCK_S = 5


class Coverage(NamedTuple):
    """Hosts, and windows: those that came, and those that should have.

    A host is expected from its first window in the range to the last one of any host. `lost` are
    samples by cause, `unknown_ppm` frames without a name, `dropped` windows that agents dropped
    because no hub took them, `skewed` hosts with clocks more than 5 s off.
    """

    hosts: int = 0
    windows: int = 0
    expected_windows: int = 0
    expected: int = 0
    seen: int = 0
    lost: tuple[tuple[str, int], ...] = ()
    unknown_ppm: int = 0
    dropped: int = 0
    skewed: int = 0

    @property
    def is_whole(self) -> bool:
        """True if nothing is missing."""
        return self.windows >= self.expected_windows and not self.lost and not self.dropped

    def text(self) -> str:
        """The line below an answer."""
        if not self.windows:
            return "coverage: no host sent a window in this range"
        share = 100 * self.windows / max(1, self.expected_windows)
        parts = [
            f"coverage: {count_text(self.hosts, 'hosts')}",
            f"{self.windows} of {count_text(self.expected_windows, 'windows')} ({share:.1f} %)",
            count_text(self.seen, "samples"),
        ]
        if self.unknown_ppm:
            parts.append(f"{self.unknown_ppm / 1e4:.1f} % of the frames unnamed")
        parts += [f"lost: {count} ({cause})" for cause, count in self.lost]
        if self.dropped:
            parts.append(count_text(self.dropped, "windows dropped by agents"))
        if self.skewed:
            parts.append(f"clocks of {count_text(self.skewed, 'hosts')} more than {_CLOCK_S} s off")
        return ", ".join(parts if self.lost else [*parts, "lost: nothing"])


def cover(connection: duckdb.DuckDBPyConnection, selection: Selection) -> Coverage:
    """Ask the view `windows`."""
    conditions = [
        f"kind = {duck.quote(selection.kind)}",
        f"ts >= {timestamp(selection.since_us)}",
        f"ts < {timestamp(selection.until_us)}",
        *(f"host = {duck.quote(value)}" for name, value in selection.where if name == "host"),
    ]
    picked = f"(select * from windows where {' and '.join(conditions)})"
    sums = duck.rows(
        connection,
        f"select count(distinct host), count(*), coalesce({duck.total('expected')}, 0), "
        f"coalesce({duck.total('seen')}, 0), "
        "coalesce(sum(unknown_ppm * seen) / greatest(sum(seen), 1), 0)::bigint, "
        f"count(distinct case when abs(clock_offset_ns) > {_CLOCK_S}e9 then host end) "
        f"from {picked}",
    )[0]
    hosts, windows, expected, seen, unknown_ppm, skewed = sums
    wanted = duck.rows(
        connection,
        "select coalesce(least(sum(greatest(n, round((ended - began) / length))), 9e18)::bigint, "
        "0) from (select count(*) as n, min(epoch_ns(ts)) as began, "
        "greatest(median(duration_ns), 1) as length, "
        "any_value(latest) as ended "
        f"from {picked}, (select max(epoch_ns(ts) + duration_ns) as latest from {picked}) "
        "group by host)",
    )[0][0]
    dropped = duck.rows(
        connection,
        f"select coalesce({duck.total('most - least')}, 0) from "
        "(select max(dropped_windows) as most, "
        f"min(dropped_windows) as least from {picked} group by host, start_id)",
    )[0][0]
    lost = duck.rows(
        connection,
        f"select entry.key, {duck.total('entry.value')} as lost from "
        f"(select unnest(map_entries(lost)) as entry from {picked}) group by 1 having lost > 0 "
        "order by lost desc, 1",
    )
    return Coverage(
        hosts, windows, max(windows, wanted), expected, seen,
        tuple((str(cause), int(count)) for cause, count in lost), unknown_ppm, dropped, skewed,
    )  # fmt: skip
