"""The text that a person reads first: a table of functions, then the heaviest stacks.

         self  CPUs      total  CPUs   function
       35.2 %  0.70     35.2 %  0.70   leaf_a(ulong, int) [shop]
          ...
    10 of 320 stacks, 61 % of 792 samples, the heaviest last:

        leaf_a(ulong, int) [shop]
        main [shop]
        -                shop (185)
            35.2 %  0.70 CPUs  279 samples

Stacks are merged by function, leaf first, recursion in one line; the parts and copies that a
compiler makes of a function (`.isra`, `.part`) are that function. Processes of one name are one,
`grep (312 PIDs)`: a script's many children are not as many stacks. `text.blocks` is bcc's layout,
which tells addresses and processes apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from purebpf.results.model.profile import Profile
from purebpf.results.model.rates import cpus_of_sample
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.model.units import count_in_unit, weight_in_unit
from purebpf.results.model.width import WIDTH, cut
from purebpf.results.shape.display_names import display_name
from purebpf.results.shape.functions import Functions
from purebpf.symbols.frame import Frame
from purebpf.tuples import NamedTuple

__all__ = ["cpus_of_sample", "functions", "pieces", "rank", "stacks"]

_FUNCTIONS = 12
_STACKS = 10
_FRAMES = 24
_DIGITS = 9
_OWNER = 21
"""Where a process's name begins."""
_ROOTS = 4
"""Of a stack that is longer than `_FRAMES`, the last ones."""
_HEADER = f"{'self':>8}  CPUs {'total':>10}  CPUs   function\n"


class Ranked(NamedTuple):
    """A function by its displayed name, and its weights."""

    name: str
    own: int
    total: int


class _Merged(NamedTuple):
    """Stacks that are displayed as one; `how` names the kind of time and the state."""

    process: str
    how: str
    names: tuple[str, ...]


class _Stacks(NamedTuple):
    """Weights of stacks and the processes that have them, and the weights of each name."""

    weights: Counter[_Merged]
    pids: dict[_Merged, set[int]]
    ranked: list[Ranked]


def pieces(
    profile: Profile,
    *,
    cpus: float = 0.0,
    top: int | None = None,
    everything: bool = False,
    whole_names: bool = False,
    has_table: bool = True,
) -> Iterator[str]:
    """The table, then the stacks, the heaviest last; nothing of an empty profile.

    Args:
        profile: the profile to print; its title is not part of the text.
        cpus: how many CPUs a weight of 1 is; 0.0 where that is not known.
        top: how many functions and stacks; None: 12 and 10.
        everything: every function and every stack, and all of its frames.
        whole_names: names as they are, however long, in lines as long as they are.
        has_table: begin with the table of functions.
    """
    total = profile.total
    if not total:
        return
    merged = _merge(profile, whole_names=whole_names)
    width = 1 << 30 if whole_names else WIDTH
    if has_table:
        yield from _table(merged.ranked, total, cpus, _limit(top, _FUNCTIONS, everything), width)
        yield "\n"
    heaviest = merged.weights.most_common(_limit(top, _STACKS, everything))
    shown = sum(weight for _, weight in heaviest)
    number = f"{len(heaviest)} of {count_text(len(merged.weights), 'stacks')}"
    share = f"{100 * shown / total:.0f} % of {_spell_total(total, profile.unit)}"
    more = "" if len(heaviest) == len(merged.weights) else " (all: --all)"
    yield f"{number}, {share}, the heaviest last{more}:\n\n"
    for stack, weight in reversed(heaviest):
        yield from _frames(stack.names, None if everything else _FRAMES, width)
        owner = f" ({_spell_pids(merged.pids[stack])}){stack.how}"
        name = cut(printable(stack.process), width - _OWNER - len(owner))
        yield f"    {'-':<16s} {name}{owner}\n"
        in_cpus = f"  {weight * cpus:.2f} CPUs" if cpus else ""
        spelled = weight_in_unit(weight, profile.unit)
        yield f"        {100 * weight / total:.1f} %{in_cpus}  {spelled}\n\n"


def _limit(top: int | None, usual: int, everything: bool) -> int | None:  # noqa: FBT001
    return top or (None if everything else usual)


def rank(profile: Profile, *, whole_names: bool = False) -> list[Ranked]:
    """Every function, the one with the greatest own weight first."""
    return _merge(profile, whole_names=whole_names).ranked


def stacks(profile: Profile, *, whole_names: bool = False) -> Iterator[tuple[tuple[str, ...], int]]:
    """Return each stack by its displayed names, leaf first, and its weight; again by process
    name.
    """
    for stack, weight in _merge(profile, whole_names=whole_names).weights.items():
        yield stack.names, weight


def functions(profile: Profile, lines: int, *, cpus: float = 0.0) -> Iterator[str]:
    """The table alone, of so many functions."""
    yield from _table(rank(profile), profile.total, cpus, lines, WIDTH)


def _merge(profile: Profile, *, whole_names: bool) -> _Stacks:
    known = Functions()
    lines = _script_lines(profile)
    names: list[str] = []
    weights: Counter[_Merged] = Counter()
    pids: dict[_Merged, set[int]] = {}
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in profile.rows():
        path = known.path(row)
        path.reverse()
        if len(known) > len(names):
            names += [
                display_name(
                    function, lines.get((function.name, function.module), 0), whole=whole_names
                )
                for function in known.table[len(names) :]
            ]
        stack = tuple([names[number] for number in path])
        how = "".join(f" {printable(word)}" for word in (row.marks.kind, row.labels.state) if word)
        merged = _Merged(row.labels.process_name, how, stack)
        weights[merged] += row.weight
        pids.setdefault(merged, set()).add(row.labels.pid)
    for merged, weight in weights.items():
        if merged.names:
            own[merged.names[0]] += weight
            for name in set(merged.names):
                total[name] += weight
    ranked = [Ranked(name, own[name], total[name]) for name in total]
    ranked.sort(key=lambda line: (-line.own, -line.total, line.name))
    return _Stacks(weights, pids, ranked)


def _spell_pids(pids: set[int]) -> str:
    return f"{len(pids)} PIDs" if len(pids) > 1 else str(*pids)


def _spell_total(total: int, unit: str) -> str:
    if unit in ("ns", "bytes") or total == 1:
        return weight_in_unit(total, unit)
    return f"{count_in_unit(total, _DIGITS)} {unit}"


def _script_lines(profile: Profile) -> dict[tuple[str, str], int]:
    """Return the heaviest line of each function of a script, by name and file, where it is read."""
    weights: dict[tuple[str, str], Counter[int]] = {}
    for row in profile.rows():
        for entry in row.user or ():
            if entry.kind == "python" and isinstance(entry, Frame) and entry.line:
                lines = weights.setdefault((entry.name, entry.module), Counter())
                lines[entry.line] += row.weight
    return {function: lines.most_common(1)[0][0] for function, lines in weights.items()}


def _table(
    ranked: Sequence[Ranked], weight: int, cpus: float, lines: int | None, width: int
) -> Iterator[str]:
    shown = ranked[:lines]
    yield _HEADER if cpus else _HEADER.replace("  CPUs", "      ")
    for name, own, total in shown:
        parts = (f"{100 * part / weight:6.1f} %{_cpus(part, cpus)}" for part in (own, total))
        yield f"{cut('   '.join(parts) + f'   {name}', width)}\n"
    if len(ranked) > len(shown):
        yield f"{'':33}and {len(ranked) - len(shown)} more\n"


def _cpus(weight: int, cpus: float) -> str:
    return f"{weight * cpus:6.2f}" if cpus else f"{'':6}"


def _frames(names: Iterable[str], most: int | None, width: int) -> Iterator[str]:
    """A line for each frame, leaf first; one for a function that calls itself."""
    lines = []
    for name, run in groupby(names):
        times = sum(1 for _ in run)
        again = f"  ({times} times)" if times > 1 else ""
        lines.append(f"    {cut(name, width - 4 - len(again))}{again}\n")
    if most is not None and len(lines) > most:
        left_out = len(lines) - most
        lines[most - _ROOTS : -_ROOTS] = [f"    ... {left_out} more functions\n"]
    yield from lines
