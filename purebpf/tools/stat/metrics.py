"""The meaning of counts: rates, shares, instructions per cycle. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from purebpf.tools.stat.counts import Count
from purebpf.tuples import NamedTuple

__all__ = ["Metric", "Row", "metrics"]

_CLOCKS = ("task-clock", "cpu-clock")
_SHARES = {
    "branch-misses": "branch-instructions",
    "cache-misses": "cache-references",
    "stalled-cycles-frontend": "cpu-cycles",
    "stalled-cycles-backend": "cpu-cycles",
}
_SPOKEN = {
    "branch-instructions": "branches",
    "cache-references": "cache references",
    "cpu-cycles": "cycles",
}

Row = Mapping[tuple[str, str], Count]
"""The counts of one row by kind and spaces."""


class Metric(NamedTuple):
    """A number made of two: `value` in `unit`; an estimate if one of the two is."""

    value: float
    unit: str
    is_estimate: bool = False


def metrics(counts: Iterable[Count], elapsed_s: float) -> list[Metric | None]:
    """Return for each count its meaning beside the others of its row; None: it has none."""
    counts = list(counts)
    rows: dict[str, dict[tuple[str, str], Count]] = {}
    for count in counts:
        rows.setdefault(count.key, {}).setdefault((count.event.kind, count.event.spaces), count)
    return [_metric(count, rows[count.key], elapsed_s) for count in counts]


def _metric(count: Count, row: Row, elapsed_s: float) -> Metric | None:
    kind = count.event.kind
    if count.value is None or elapsed_s <= 0:
        return None
    if kind in _CLOCKS:
        return Metric(count.value / 1e9 / elapsed_s, "CPUs used", count.is_scaled)
    if kind == "cpu-cycles":
        for clock in _CLOCKS:
            if ratio := _ratio(count, row.get((clock, count.event.spaces)), 1, "GHz"):
                return ratio
    if kind == "instructions":
        cycles = row.get(("cpu-cycles", count.event.spaces))
        if ratio := _ratio(count, cycles, 1, "per cycle"):
            return ratio
    if base := _base(kind):
        whole = row.get((base, count.event.spaces))
        if ratio := _ratio(count, whole, 100, f"% of {_SPOKEN.get(base, base)}"):
            return ratio
    return Metric(count.value / elapsed_s, "/s", count.is_scaled)


def _base(kind: str) -> str:
    """Return the event that an event is a part of: `L1-dcache-load-misses` of `L1-dcache-loads`."""
    if kind in _SHARES:
        return _SHARES[kind]
    operation = kind.removesuffix("-misses")
    if operation == kind or "-" not in operation:
        return ""
    return f"{operation}{'es' if operation.endswith('prefetch') else 's'}"


def _ratio(count: Count, base: Count | None, factor: int, unit: str) -> Metric | None:
    if base is None or not base.value or count.value is None:
        return None
    return Metric(factor * count.value / base.value, unit, count.is_scaled or base.is_scaled)
