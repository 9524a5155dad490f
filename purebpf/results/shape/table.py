"""The flat table: how much each function is on the CPU itself, and how much with its callees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from purebpf.results.model.profile import Profile
from purebpf.results.model.spelling import printable
from purebpf.results.shape.functions import Function, Functions, function
from purebpf.symbols.frame import Frame, Unknown
from purebpf.tuples import NamedTuple

__all__ = ["Line", "csv", "lines", "modules"]


class Line(NamedTuple):
    """A function, the weight of the stacks it ends, and of those it is in.

    A stack counts once, however often a recursive function is in it.
    """

    function: Function
    own: int
    total: int


def lines(profile: Profile, key: Callable[[Frame | Unknown], Function] = function) -> list[Line]:
    """Every function, as `key` tells them apart; the one with the greatest own weight first."""
    functions = Functions(key)
    own: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for row in profile.rows():
        path = functions.path(row)
        if path:
            own[path[-1]] += row.weight
            for number in set(path):
                total[number] += row.weight
    table = functions.table
    table_lines = [Line(table[number], own[number], total[number]) for number in total]
    return sorted(table_lines, key=lambda line: (-line.own, -line.total, line.function))


def modules(profile: Profile) -> list[tuple[str, int, int]]:
    """The same by module: its name, own and total weight; the greatest own weight first."""
    functions = Functions()
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    known: list[str] = []
    for row in profile.rows():
        path = functions.path(row)
        if len(known) < len(functions):
            known = [function.module for function in functions.table]
        if path:
            own[known[path[-1]]] += row.weight
            for name in {known[number] for number in path}:
                total[name] += row.weight
    return [
        (name, own[name], total[name]) for name in sorted(total, key=lambda module: -own[module])
    ]


def csv(profile: Profile) -> Iterator[str]:
    """The table as comma-separated values (RFC 4180), a header first.

    Names come from other people's programs: a character that would move a terminal's cursor becomes
    `?`, and a field that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    whole = profile.total or 1
    yield "function,module,kind,self,self_percent,total,total_percent\r\n"
    for (name, module, kind, *_), own, total in lines(profile):
        texts = ",".join(map(_field, (name, module, kind)))
        yield f"{texts},{own},{100 * own / whole:.3f},{total},{100 * total / whole:.3f}\r\n"


def _field(text: str) -> str:
    text = printable(text)
    if text[:1] in {"=", "+", "-", "@"}:
        text = f"'{text}"
    if any(char in text for char in '",'):
        return '"' + text.replace('"', '""') + '"'
    return text
