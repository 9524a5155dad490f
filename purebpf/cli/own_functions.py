"""Lines above the table of functions: a program's own functions, or the programs. Pure.

own code, with what it calls: 47 % main.appendRow [exporter]
programs: 40 % cut (190 processes), 21 % sh (380), 9 % expr (95)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from purebpf.results.formats.answer import rank
from purebpf.results.model.spelling import printable
from purebpf.results.model.width import WIDTH, cut
from purebpf.results.shape.display_names import display_name
from purebpf.results.shape.functions import Function

if TYPE_CHECKING:
    from purebpf.results import Profile

__all__ = ["describe_own", "describe_programs"]

_LEAST, _MOST = 0.1, 3
"""The part of all samples that an own function must have, and how many are named."""
_FIRST = 5
"""Rows of the table in which a function is seen at once."""
_FEW = 20
"""Samples that tell nothing of a part."""
_MANY_PROCESSES, _PROGRAMS = 8, 4
"""Processes from which their programs are named, and how many programs."""
_HEAD = "own code, with what it calls: "


def describe_own(profile: Profile) -> Iterator[str]:
    """Return a line and an empty one, or nothing where the first rows of a table say as much.

    A sample belongs to the innermost own function of its stack.

    Args:
        profile: samples of CPU time.
    """
    if profile.total < _FEW:
        return
    heavy = [
        (name, weight)
        for name, weight in _own_weights(profile).most_common(_MOST)
        if weight >= _LEAST * profile.total
    ]
    if not heavy or any(_is_name(line.name, heavy[0][0]) for line in rank(profile)[:_FIRST]):
        return
    named = ", ".join(f"{100 * weight / profile.total:.0f} % {name}" for name, weight in heavy)
    yield f"{cut(_HEAD + named, WIDTH)}\n\n"


def describe_programs(profile: Profile, parents: Sequence[str] = ()) -> Iterator[str]:
    """Return a line and an empty one about many processes, or nothing where few have the time.

    Args:
        profile: samples of CPU time.
        parents: the commands whose children these are.
    """
    weights: Counter[str] = Counter()
    pids: dict[str, set[int]] = defaultdict(set)
    for row in profile.rows():
        weights[row.labels.process_name] += row.weight
        pids[row.labels.process_name].add(row.labels.pid)
    if profile.total < _FEW or sum(map(len, pids.values())) < _MANY_PROCESSES:
        return
    named = ", ".join(
        f"{100 * weight / profile.total:.0f} % {printable(name)} ({len(pids[name])} "
        f"process{'es' if len(pids[name]) > 1 else ''})"
        for name, weight in weights.most_common(_PROGRAMS)
    )
    for parent in parents:
        yield f"{cut(f'children of {parent}', WIDTH)}\n"
    yield f"{cut(f'programs: {named}', WIDTH)}\n\n"


def _own_weights(profile: Profile) -> Counter[str]:
    from purebpf.findings.places import programs_of  # not for a few samples
    from purebpf.measure.activities import activity_of

    rows = profile.rows()
    activities = [activity_of(row, "cpu", row.weight) for row in rows]
    programs = programs_of(activities)
    weights: Counter[str] = Counter()
    for row, activity in zip(rows, activities, strict=True):
        program = programs[activity.pid]
        own = next((frame for frame in activity.user if program.owns(frame)), None)
        if own is not None:
            line = own.line if own.kind == "python" else 0
            weights[display_name(Function(own.name, own.module, own.kind), line)] += row.weight
    return weights


def _is_name(shown: str, name: str) -> bool:
    """Return True for the same function: the line of a script may be another one."""
    return shown == name or shown.rpartition(":")[0] == name.rpartition(":")[0] != ""
