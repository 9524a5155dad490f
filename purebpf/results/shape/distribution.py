"""Durations of groups of tasks, as histograms: the model of runqlat and cpudist, and its writers.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from purebpf.results.model.loss import Loss
from purebpf.results.model.spelling import printable
from purebpf.results.shape.histogram import bucket_bounds, lines, percentile

__all__ = ["PERCENTILES", "Distribution", "Group", "json_document", "text"]

PERCENTILES = (50, 90, 99)


class Group(NamedTuple):
    """Group of durations: a kind ("pid", "tid", "pidns", "cgroup"; "": all), which, its name."""

    kind: str = ""
    number: int = 0
    name: str = ""


class Distribution(NamedTuple):
    """Durations of a group.

    Attributes:
        buckets: how many there were by size in units (`report.histogram`).
        total_ns: their sum, in nanoseconds.
    """

    group: Group
    buckets: Sequence[int]
    total_ns: int

    @property
    def durations(self) -> int:
        """How many there were."""
        return sum(self.buckets)


def text(found: Sequence[Distribution], unit: str, unit_ns: int, *, totals: bool) -> Iterator[str]:
    """Bcc's layout, and a line of percentiles below each histogram.

    Args:
        found: what was measured; the busiest group comes last.
        unit: "usecs" or "msecs".
        unit_ns: nanoseconds in it.
        totals: the average and the sum too, as bcc's `-e`.
    """
    for each in sorted(found, key=lambda each: each.durations):
        if each.group.kind:
            name = f" {printable(each.group.name)}" if each.group.name else ""
            yield f"\n{each.group.kind} = {each.group.number}{name}\n"
        yield from lines(each.buckets, unit)
        if not each.durations:
            continue
        values = (f"p{at} {percentile(each.buckets, at)}" for at in PERCENTILES)
        yield f"     {', '.join(values)} {unit}\n"
        if totals:
            total = each.total_ns // unit_ns
            average = each.total_ns // each.durations // unit_ns
            yield f"\navg = {average} {unit}, total: {total} {unit}, count: {each.durations}\n"


def json_document(
    found: Sequence[Distribution], unit_ns: int, loss: Loss, about: Mapping[str, object]
) -> dict[str, object]:
    """The same for machines; buckets are `[least, one too many, count]`, in nanoseconds."""
    return {
        **about,
        "unit_ns": unit_ns,
        "groups": [
            {
                "group": _label(each.group),
                "count": each.durations,
                "total_ns": each.total_ns,
                **{
                    f"p{at}_ns": None if (at_units := percentile(each.buckets, at)) is None
                    else at_units * unit_ns
                    for at in PERCENTILES
                },
                "buckets": [
                    [low * unit_ns, high * unit_ns, count]
                    for (low, high), count in zip(
                        map(bucket_bounds, range(len(each.buckets))), each.buckets, strict=True
                    )
                    if count
                ],
            }
            for each in found
        ],
        "loss": {cause.name: cause.lost for cause in loss.causes},
    }  # fmt: skip


def _label(group: Group) -> dict[str, object]:
    if group.kind in ("pid", "tid"):
        return {group.kind: group.number, "comm": group.name}
    if group.kind == "cgroup":
        return {"cgroup_id": group.number, "path": group.name}
    return {group.kind: group.number} if group.kind else {}
