"""The changes between two profiles: by function, in parts of each profile's whole.

Weights of different runs cannot be compared as they are: one may have been longer, or sampled
faster. Parts of the whole can. Functions are matched whatever the path or version of their file
(`purebpf.results.shape.matching`).
"""

from __future__ import annotations

from collections.abc import Iterator
from json import JSONEncoder
from typing import NamedTuple

from purebpf.errors import FormatError
from purebpf.results.model.profile import Profile
from purebpf.results.model.spelling import printable
from purebpf.results.shape import table
from purebpf.results.shape.functions import Function
from purebpf.results.shape.matching import Matching

__all__ = ["SCHEMA", "Change", "Difference", "compare", "document", "text"]

SCHEMA = "purebpf.diff/1"
_SHOWN = 0.005  # percentage points; less would be printed as no change


class Change(NamedTuple):
    """A function before and after: percent of the whole, by itself and with its callees."""

    function: Function
    own_before: float
    own_after: float
    total_before: float
    total_after: float

    @property
    def own(self) -> float:
        """Percentage points that its own part grew by."""
        return self.own_after - self.own_before

    @property
    def state(self) -> str:
        """`new`, `vanished` or ``."""
        if not self.total_before:
            return "new"
        return "" if self.total_after else "vanished"


class Difference(NamedTuple):
    """Every function of two profiles, ordered by the change of its self weight, the greatest
    first.
    """

    title: str
    unit: str
    before: int
    after: int
    changes: tuple[Change, ...]

    @property
    def worst(self) -> float:
        """By how many percentage points the function grew that grew most; 0 if none did."""
        return max((change.own for change in self.changes), default=0.0)


def compare(before: Profile, after: Profile, title: str) -> Difference:
    """Compare two profiles.

    Raises:
        FormatError: they count different things, or one counts nothing.
    """
    if before.unit != after.unit:
        raise FormatError(
            title,
            "unit",
            (
                f"cannot compare profiles of different units: one counts {before.unit}, one "
                f"{after.unit}"
            ),
        )
    wholes = before.total, after.total
    for name, whole in zip(("before", "after"), wholes, strict=True):
        if not whole:
            raise FormatError(title, name, "cannot compare an empty profile")
    parts: dict[Function, list[float]] = {}
    matching = Matching()
    for at, (profile, whole) in enumerate(zip((before, after), wholes, strict=True)):
        for function, own, total in table.lines(profile, matching):
            shares = parts.setdefault(function, [0.0] * 4)
            shares[at] = 100 * own / whole
            shares[at + 2] = 100 * total / whole
    changes = [
        Change(matching.shown.get(key, key), *of_function) for key, of_function in parts.items()
    ]
    changes.sort(key=lambda change: (-abs(change.own), -change.total_after, change.function))
    return Difference(title, before.unit, *wholes, tuple(changes))


def text(difference: Difference, *, top: int = 30) -> Iterator[str]:
    """Return a table of the greatest changes, then new and vanished functions, heaviest first."""
    yield f"{printable(difference.title)}\n"
    before, after, unit = difference.before, difference.after, difference.unit
    yield f"{before} {unit} before, {after} after; percent of each\n\n"
    changed = [change for change in difference.changes if abs(change.own) >= _SHOWN]
    if not changed:
        yield "no function changed\n"
        return
    yield f"{'before':>8} {'after':>8} {'change':>8}  function\n"
    for change in changed[:top]:
        yield (
            f"{change.own_before:8.2f} {change.own_after:8.2f} {change.own:+8.2f}"
            f"  {_spell(change.function)}\n"
        )
    if len(changed) > top:
        yield f"{'':26}  and {len(changed) - top} more\n"
    for state in ("vanished", "new"):
        those = sorted(
            (change for change in difference.changes if change.state == state),
            key=lambda change: -max(change.total_before, change.total_after),
        )
        if those:
            yield f"\n{state} ({len(those)}), with callees:\n"
            for change in those[:top]:
                yield (
                    f"{change.total_before:8.2f} {change.total_after:8.2f} {'':8}"
                    f"  {_spell(change.function)}\n"
                )


def document(difference: Difference) -> str:
    """The difference as one JSON object: `docs/diff.md` describes it."""
    tree = {
        "schema": SCHEMA,
        "title": difference.title,
        "unit": difference.unit,
        "before": difference.before,
        "after": difference.after,
        "worst": round(difference.worst, 3),
        "functions": [
            {
                "name": change.function.name,
                "module": change.function.module,
                "kind": change.function.kind,
                "state": change.state,
                "own_before": round(change.own_before, 3),
                "own_after": round(change.own_after, 3),
                "total_before": round(change.total_before, 3),
                "total_after": round(change.total_after, 3),
            }
            for change in difference.changes
        ],
    }
    return JSONEncoder(separators=(",", ":")).encode(tree) + "\n"


def _spell(function: Function) -> str:
    module = function.module.rpartition("/")[2] or function.module
    return printable(f"{function.name} [{module.strip('[]')}]" if module else function.name)
