"""A profile as rows of the screen: functions, their callers, and who runs them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from purebpf.cli.sheet import Column, SheetRow, Step
from purebpf.results import Labels, Profile
from purebpf.results.formats import answer

__all__ = ["COLUMNS", "DEEPER", "OWNERS", "is_idle", "owner", "restrict", "rows", "weigh"]

OWNERS = ("process", "thread", "comm", "cgroup")
DEEPER = {"function": "function", **dict.fromkeys(OWNERS, "function")}
COLUMNS = (Column("self", 7), Column("total", 7), Column("CPUs", 6))
_NO_CALLER = "[no caller]"
_BELOW = 1 << 80
"""Taken from the numbers by which idle places are sorted: they stand below all others."""


def rows(profile: Profile, by: str, path: Sequence[Step], cpus: float) -> list[SheetRow]:
    """The rows of a screen.

    Args:
        profile: the samples.
        by: the kind of rows.
        path: the steps to the present view: owners, then functions, each the caller of the one
            before.
        cpus: how many CPUs a sample is.
    """
    whole = profile.total
    profile = restrict(profile, path)
    chain = [str(step.key) for step in path if step.kind == "function"]
    weights = _callers(profile, chain) if chain else weigh(profile, by)
    function_rows = [_row(name, own, total, whole, cpus) for name, own, total in weights]
    return [_below(row) if is_idle(by, row.name) else row for row in function_rows]


def _below(row: SheetRow) -> SheetRow:
    return row._replace(values=tuple(value - _BELOW for value in row.values), share=0.0)


def restrict(profile: Profile, path: Sequence[Step]) -> Profile:
    """Return the profile without rows of owners that are not in the path."""
    owners = [(step.kind, step.key) for step in path if step.kind in OWNERS]
    if not owners:
        return profile
    kept = profile.without_rows()
    for row in profile.rows():
        if all(owner(row.labels, kind) == key for kind, key in owners):
            kept.add_row(row)
    return kept


def owner(labels: Labels, by: str) -> str:
    """Return the label of the row that counts samples with these labels."""
    if by == "cgroup":
        return labels.cgroup or "[no cgroup]"
    if by == "comm":
        return labels.comm
    if by == "thread":
        return f"{labels.comm} ({labels.tid or labels.pid})"
    return f"{labels.process_name} ({labels.pid})"


def weigh(profile: Profile, by: str) -> Sequence[tuple[str, int, int]]:
    """Name, own and total weight of each row."""
    if by == "function":
        return answer.rank(profile)
    if by == "place":
        return _weigh_places(profile)
    if by == "module":
        from purebpf.results.shape import table

        modules = table.modules(profile)
        return [(name or "[no module]", own, total) for name, own, total in modules]
    weights: Counter[str] = Counter()
    for row in profile.rows():
        weights[owner(row.labels, by)] += row.weight
    return [(name, weight, weight) for name, weight in weights.items()]


def _weigh_places(profile: Profile) -> list[tuple[str, int, int]]:
    from purebpf.cli.places import describe_place, places_of  # of one screen only

    places = places_of(profile.rows())
    with_process = len({place.process for place in places}) > 1
    weights: Counter[str] = Counter()
    for place in places:
        weights[describe_place(place, with_process=with_process)] += round(place.seconds * 1e9)
    return [(name, weight, weight) for name, weight in weights.items()]


def is_idle(by: str, name: str) -> bool:
    """Return True if a row is a wait for something to do, or one whose stack was not read."""
    return by == "place" and name.startswith(("idle: ", "not known: "))


def _callers(profile: Profile, chain: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the callers of the last function of the chain on the way to the first one.

    The own weight belongs to stacks that end with the chain's first function.
    """
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    length = len(chain)
    wanted = list(chain)
    for names, weight in answer.stacks(profile):
        callers = set()
        for at in range(len(names) - length + 1):
            if list(names[at : at + length]) == wanted:
                end = at + length
                caller = names[end] if end < len(names) else _NO_CALLER
                callers.add(caller)
                if at == 0:
                    own[caller] += weight
        for caller in callers:
            total[caller] += weight
    return [(caller, own[caller], total[caller]) for caller in total]


def _row(name: str, own: int, total: int, whole: int, cpus: float) -> SheetRow:
    share = own / (whole or 1)
    cells = (
        f"{100 * share:.2f}%",
        f"{100 * total / (whole or 1):.2f}%",
        f"{own * cpus:.2f}" if cpus else "",
    )
    return SheetRow(name, name, (own, total, own), cells, share)
