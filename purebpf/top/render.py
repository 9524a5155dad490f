"""A profile as a table of a few lines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from purebpf.results import Labels, Profile
from purebpf.results.model.spelling import printable
from purebpf.results.shape import table

__all__ = ["percent", "rank_lines", "render"]

_WIDTH = 80


def render(profile: Profile, *, by: str, lines: int, heading: str) -> Iterator[str]:
    """The heading, the names of the columns, and the heaviest `lines`.

    Args:
        profile: what to show.
        by: what a line counts: "function", "module", "comm", "process" or "cgroup".
        lines: how many of them.
        heading: says what it is of; the weight of everything is put behind it.
    """
    whole = profile.total
    yield f"{heading}: {whole} {profile.unit}\n"
    yield f"{'self':>7} {'total':>7} {'samples':>8}  {by}\n"
    rows = rank_lines(profile, by)
    for name, own, total in rows[:lines]:
        line = f"{percent(own, whole)} {percent(total, whole)} {own:8}  {printable(name)}"
        yield f"{line[:_WIDTH]}\n"
    if len(rows) > lines:
        yield f"{'':24}  and {len(rows) - lines} more\n"


def rank_lines(profile: Profile, by: str) -> list[tuple[str, int, int]]:
    """Name, own and total weight of each line, the heaviest first."""
    return sorted(_weights(profile, by), key=lambda row: (-row[1], -row[2], row[0]))


def percent(part: int, whole: int) -> str:
    """Seven letters."""
    return f"{100 * part / (whole or 1):6.2f}%"


def _weights(profile: Profile, by: str) -> Iterable[tuple[str, int, int]]:
    """Name, own and total weight of each line."""
    if by in {"function", "module"}:
        return _of_functions(profile, by)
    weights: Counter[str] = Counter()
    for row in profile.rows():
        weights[_owner(row.labels, by)] += row.weight
    return [(name, weight, weight) for name, weight in weights.items()]


def _of_functions(profile: Profile, by: str) -> Iterator[tuple[str, int, int]]:
    if by == "module":
        for module, own, total in table.modules(profile):
            yield module or "[no module]", own, total
        return
    for (name, module, *_), own, total in table.lines(profile):
        file = (module.rpartition("/")[2] or module).strip("[]")
        yield f"{name} [{file}]" if file else name, own, total


def _owner(labels: Labels, by: str) -> str:
    if by == "cgroup":
        return labels.cgroup or "[no cgroup]"
    return labels.comm if by == "comm" else f"{labels.process_name} ({labels.pid})"
