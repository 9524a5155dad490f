"""Durations of groups of tasks, as histograms: the model of runqlat and cpudist, and its writers.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from purebpf.results.model.loss import Loss
from purebpf.results.model.spelling import printable
from purebpf.results.shape.histogram import bucket_bounds, lines, percentile
from purebpf.tuples import NamedTuple

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
        """The number of durations."""
        return sum(self.buckets)


def text(
    distributions: Sequence[Distribution], unit: str, unit_ns: int, *, totals: bool
) -> Iterator[str]:
    """Bcc's layout, and a line of percentiles below each histogram.

    Args:
        distributions: the measured groups; the busiest group comes last.
        unit: "usecs" or "msecs".
        unit_ns: nanoseconds in it.
        totals: the average and the sum too, as bcc's `-e`.
    """
    for distribution in sorted(distributions, key=lambda group: group.durations):
        if distribution.group.kind:
            name = f" {printable(distribution.group.name)}" if distribution.group.name else ""
            yield f"\n{distribution.group.kind} = {distribution.group.number}{name}\n"
        yield from lines(distribution.buckets, unit)
        if not distribution.durations:
            continue
        values = (f"p{at} {percentile(distribution.buckets, at)}" for at in PERCENTILES)
        yield f"     {', '.join(values)} {unit}\n"
        if totals:
            total = distribution.total_ns // unit_ns
            average = distribution.total_ns // distribution.durations // unit_ns
            count = distribution.durations
            yield f"\navg = {average} {unit}, total: {total} {unit}, count: {count}\n"


def json_document(
    distributions: Sequence[Distribution], unit_ns: int, loss: Loss, about: Mapping[str, object]
) -> dict[str, object]:
    """The same for machines; buckets are `[least, one too many, count]`, in nanoseconds."""
    return {
        **about,
        "unit_ns": unit_ns,
        "groups": [
            {
                "group": _label(distribution.group),
                "count": distribution.durations,
                "total_ns": distribution.total_ns,
                **{
                    f"p{at}_ns": None if (at_units := percentile(distribution.buckets, at)) is None
                    else at_units * unit_ns
                    for at in PERCENTILES
                },
                "buckets": [
                    [low * unit_ns, high * unit_ns, count]
                    for (low, high), count in zip(
                        map(bucket_bounds, range(len(distribution.buckets))),
                        distribution.buckets,
                        strict=True,
                    )
                    if count
                ],
            }
            for distribution in distributions
        ],
        "loss": {cause.name: cause.lost for cause in loss.causes},
    }  # fmt: skip


def _label(group: Group) -> dict[str, object]:
    if group.kind in ("pid", "tid"):
        return {group.kind: group.number, "comm": group.name}
    if group.kind == "cgroup":
        return {"cgroup_id": group.number, "path": group.name}
    return {group.kind: group.number} if group.kind else {}
