"""A profile as a table of a few lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.results import Profile
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit, weight_in_unit
from purebpf.results.model.width import cut
from purebpf.tools.top.rows import is_idle, weigh

__all__ = ["rank_lines", "render"]

_WIDTH = 80


def render(
    profile: Profile, *, by: str, lines: int, heading: str, sort: str = "self"
) -> Iterator[str]:
    """The heading, the names of the columns, and the heaviest `lines`.

    Args:
        profile: the profile to show.
        by: the subject of a line: "function", "module", "comm", "process", "thread" or "cgroup".
        lines: how many of them.
        heading: the subject; the weight of everything is put behind it.
        sort: "self" or "total".
    """
    whole = profile.total
    yield f"{heading}: {weight_in_unit(whole, profile.unit)}\n"
    yield f"{'self':>7} {'total':>7} {'time' if profile.unit == 'ns' else profile.unit:>8}  {by}\n"
    rows = rank_lines(profile, by, sort=sort)
    for name, own, total in rows[:lines]:
        weight = in_unit(own) if profile.unit == "ns" else str(own)
        line = f"{_percent(own, whole)} {_percent(total, whole)} {weight:>8}  {printable(name)}"
        yield f"{cut(line, _WIDTH)}\n"
    if len(rows) > lines:
        yield f"{'':24}  and {len(rows) - lines} more\n"


def rank_lines(profile: Profile, by: str, *, sort: str = "self") -> list[tuple[str, int, int]]:
    """Name, own and total weight of each line, the heaviest first."""
    lines = weigh(profile, by)
    if sort == "total":
        return sorted(lines, key=lambda row: (is_idle(by, row[0]), -row[2], -row[1], row[0]))
    return sorted(lines, key=lambda row: (is_idle(by, row[0]), -row[1], -row[2], row[0]))


def _percent(part: int, whole: int) -> str:
    """Seven letters."""
    return f"{100 * part / (whole or 1):6.2f}%"
