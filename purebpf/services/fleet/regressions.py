"""Functions with a share that changed by more than chance explains, and how sure that is."""

from __future__ import annotations

from typing import NamedTuple

from purebpf.errors import PurebpfError
from purebpf.services.fleet.answers import PLACE, FramePlace, Question, named
from purebpf.services.fleet.uncertainty import Moments, Wholes, least_z, standard_error, z_of

__all__ = ["Change", "Comparison", "ComparisonError", "compare"]

_FEW_HOSTS = 8
_LEAST_SAMPLES = 25
_TWO_SIDED = 1.96  # of the normal distribution: 95 %


class ComparisonError(PurebpfError):
    """Two sides that cannot be compared; says why."""


class Change(NamedTuple):
    """A function's own share of each side, as parts of 1, and the standard error of the change."""

    place: FramePlace
    before: float
    after: float
    error: float

    @property
    def size(self) -> float:
        """The change, as a part of 1."""
        return self.after - self.before

    @property
    def margin(self) -> float:
        """Half the width of the interval that holds the change 95 times of 100."""
        return _TWO_SIDED * self.error

    @property
    def at_least(self) -> float:
        """The end of that interval that is nearer to no change; 0 if the interval has it."""
        if abs(self.size) <= self.margin:
            return 0.0
        return self.size - self.margin if self.size > 0 else self.size + self.margin


class Comparison(NamedTuple):
    """The changes: `grew` and `shrank`, the surest large ones first.

    `functions` were compared; others had too few samples. `clusters` are the units of each side's
    error: its hosts, or with `by_window` its windows, because there are few hosts.
    """

    grew: list[Change]
    shrank: list[Change]
    functions: int
    clusters: tuple[int, int]
    by_window: bool

    @property
    def worst(self) -> float:
        """The greatest growth of a function, at least, as a part of 1."""
        return max((change.at_least for change in self.grew), default=0.0)


def compare(before: Question, after: Question) -> Comparison:
    """Compare two questions that were opened `by_host`, on two connections to one database.

    The sums of both are tables of that database, and count as its memory.

    Raises:
        ComparisonError: a side has no samples.
        QueryError: a file cannot be read.
    """
    sides = before, after
    hosts = [side.number_of("host") for side in sides]
    for name, number in zip(("before", "after"), hosts, strict=True):
        if not number:
            raise ComparisonError(f"there are no samples {name}: nothing to compare")
    by_window = min(hosts) < _FEW_HOSTS
    cluster = "host || ' ' || epoch_us(ts)" if by_window else "host"
    # the two connections know different files
    before.keep_leaf_sums("before_sums", cluster)
    after.keep_leaf_sums("after_sums", cluster)
    *sums, clusters_a, clusters_b = after.ask(_WHOLES)[0]
    t_a, t_b, tt_a, tt_b, tt_ab = sums
    period = max(side.period() for side in sides)
    whole = Wholes(t_a, t_b, tt_a, tt_b, tt_ab, clusters_a, clusters_b, period)
    rows = [row for row in after.ask(_MOMENTS) if _is_enough(row[1] + row[2], whole.period)]
    limit, clusters = least_z(len(rows)), min(whole.clusters_a, whole.clusters_b)
    sure = []
    for leaf, *moments in rows:
        of = Moments(*moments)
        share_a, share_b = of.x_a / whole.t_a, of.x_b / whole.t_b
        error = standard_error(of, whole)
        if abs(z_of(share_b - share_a, error, clusters)) >= limit:
            sure.append((leaf, share_a, share_b, error))
    places = _places(sides, [leaf for leaf, *_ in sure])
    changes = [Change(places[leaf], *of) for leaf, *of in sure]
    changes.sort(key=lambda change: (-abs(change.at_least), -abs(change.size), change.place))
    return Comparison(
        [change for change in changes if change.size > 0],
        [change for change in changes if change.size < 0],
        len(rows),
        (whole.clusters_a, whole.clusters_b),
        by_window,
    )


def _is_enough(value: float, period: float) -> bool:
    return value >= _LEAST_SAMPLES * period


def _places(sides: tuple[Question, Question], leaves: list[int]) -> dict[int, FramePlace]:
    """Return the names of the frames, from either side."""
    lost = FramePlace("[not stored]", "", "", "", -1)
    places = dict.fromkeys(leaves, lost)
    if leaves:
        wanted = f"(select unnest([{', '.join(map(str, leaves))}]) as frame)"
        for side in sides:
            rows = side.ask(f"select frame, {PLACE} from ({named(wanted)})")
            places.update((frame, FramePlace(*place)) for frame, *place in rows)
    return places


_WHOLES = """
with a as (select cluster, sum(x) as t from before_sums group by cluster),
     b as (select cluster, sum(x) as t from after_sums group by cluster)
select (select sum(t) from a), (select sum(t) from b),
       (select sum(t * t) from a), (select sum(t * t) from b),
       (select coalesce(sum(a.t * b.t), 0) from a join b using (cluster)),
       (select count(*) from a), (select count(*) from b)
"""
_MOMENTS = """
with whole as materialized (
  select cluster, coalesce(a.t, 0) as t_a, coalesce(b.t, 0) as t_b
  from (select cluster, sum(x) as t from before_sums group by cluster) a
  full join (select cluster, sum(x) as t from after_sums group by cluster) b using (cluster)),
both_sides as (
  select cluster, leaf, coalesce(a.x, 0) as x_a, coalesce(b.x, 0) as x_b
  from before_sums a full join after_sums b using (cluster, leaf))
select leaf, sum(x_a), sum(x_b), sum(x_a * x_a), sum(x_b * x_b), sum(x_a * t_a), sum(x_b * t_b),
       sum(x_a * x_b), sum(x_a * t_b), sum(x_b * t_a)
from both_sides join whole using (cluster) group by leaf order by leaf
"""
