"""The changes between two profiles: by function, in CPUs or in parts of each profile's whole.

Weights of different runs cannot be compared as they are: one may have been longer, or sampled
faster. Parts of the whole can; but if a program uses twice the CPU time in one function, the parts
of all others shrink. CPUs do not have this fault, where both profiles know their rate. Functions
are matched whatever the path or version of their file (`purebpf.results.shape.matching`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import JSONEncoder

from purebpf.errors import FormatError
from purebpf.results.model.profile import Profile
from purebpf.results.model.rates import cpus_of_sample
from purebpf.results.model.spelling import count_text, printable
from purebpf.results.shape import table
from purebpf.results.shape.chance import is_chance, least_deviates
from purebpf.results.shape.display_names import display_name
from purebpf.results.shape.functions import Function
from purebpf.results.shape.matching import Matching
from purebpf.tuples import NamedTuple

__all__ = ["SCHEMA", "Change", "Difference", "compare", "document", "text"]

SCHEMA = "purebpf.diff/1"
_SHOWN = 0.005  # percentage points; less would be printed as no change


class Change(NamedTuple):
    """A function before and after: percent of the whole, by itself and with its callees.

    Attributes:
        is_chance: the chance of sampling explains the change of its own part.
        total_is_chance: and the change with its callees.
    """

    function: Function
    own_before: float
    own_after: float
    total_before: float
    total_after: float
    is_chance: bool = False
    total_is_chance: bool = False

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

    Attributes:
        cpus: the busy CPUs of both profiles; None where one does not know its rate.
    """

    title: str
    unit: str
    before: int
    after: int
    changes: tuple[Change, ...]
    cpus: tuple[float, float] | None = None

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
    cpus = _cpus(before, after)
    scales = cpus or (100.0, 100.0)
    changes = [
        Change(matching.shown.get(key, key), *of_function[:4])  # type: ignore[arg-type]
        for key, of_function in parts.items()
    ]
    if before.unit == "samples":
        changes = _judge(changes, wholes, scales)
    changes.sort(
        key=lambda change: (-abs(_own(change, scales)), -change.total_after, change.function)
    )
    return Difference(title, before.unit, *wholes, tuple(changes), cpus)


def _cpus(before: Profile, after: Profile) -> tuple[float, float] | None:
    """The busy CPUs of both profiles; None where one does not know its rate."""
    first, second = (profile.total * cpus_of_sample(profile) for profile in (before, after))
    return (first, second) if first and second else None


def _own(change: Change, scales: tuple[float, float]) -> float:
    """The change of a function by itself, where the wholes are `scales`."""
    return (change.own_after * scales[1] - change.own_before * scales[0]) / 100


def _judge(
    changes: Sequence[Change], wholes: tuple[int, int], scales: tuple[float, float]
) -> list[Change]:
    """The changes with the decision if chance explains them."""
    deviates = least_deviates(len(changes))
    of_sample = scales[0] / wholes[0], scales[1] / wholes[1]

    def decide(before: float, after: float) -> bool:
        samples = before * wholes[0] / 100, after * wholes[1] / 100
        return is_chance(samples, of_sample, deviates)

    return [
        change._replace(
            is_chance=decide(change.own_before, change.own_after),
            total_is_chance=decide(change.total_before, change.total_after),
        )
        for change in changes
    ]


def text(difference: Difference, *, top: int = 30, everything: bool = False) -> Iterator[str]:
    """Return a table of the greatest changes, then new and vanished functions, heaviest first.

    Args:
        difference: of two profiles.
        top: the most lines of each table.
        everything: also changes that chance explains.
    """
    yield f"{printable(difference.title)}\n"
    before, after, unit = difference.before, difference.after, difference.unit
    counts = f"{before} {unit} before, {after} after"
    if difference.cpus:
        yield "{:.2f} CPUs before, {:.2f} after".format(*difference.cpus) + f" ({counts})\n\n"
    else:
        yield f"{counts}; percent of each\n\n"
    scales = difference.cpus or (100.0, 100.0)
    changed = [change for change in difference.changes if abs(change.own) >= _SHOWN]
    shown = [change for change in changed if everything or not change.is_chance]
    by_chance = len(changed) - len(shown)
    if by_chance:
        number = count_text(by_chance, "functions")
        left_out = f"{number} changed by no more than chance explains (all: --all)\n"
    else:
        left_out = ""
    if not shown:
        yield left_out or "no function changed\n"
        return
    yield f"{'before':>8} {'after':>8} {'change':>8}  function\n"
    for change in shown[:top]:
        own = change.own_before * scales[0] / 100, change.own_after * scales[1] / 100
        yield f"{own[0]:8.2f} {own[1]:8.2f} {own[1] - own[0]:+8.2f}  {_spell(change.function)}\n"
    if len(shown) > top:
        yield f"{'':26}  and {len(shown) - top} more\n"
    yield left_out
    yield from _appeared(difference, scales, top, everything=everything)


def _appeared(
    difference: Difference, scales: tuple[float, float], top: int, *, everything: bool
) -> Iterator[str]:
    """The vanished functions, and the new ones."""
    for state in ("vanished", "new"):
        those = sorted(
            (
                change
                for change in difference.changes
                if change.state == state and (everything or not change.total_is_chance)
            ),
            key=lambda change: -max(change.total_before, change.total_after),
        )
        if those:
            yield f"\n{state} ({len(those)}), with callees:\n"
            for change in those[:top]:
                total = change.total_before * scales[0] / 100, change.total_after * scales[1] / 100
                yield f"{total[0]:8.2f} {total[1]:8.2f} {'':8}  {_spell(change.function)}\n"


def document(difference: Difference) -> str:
    """The difference as one JSON object: `docs/diff.md` describes it."""
    tree = {
        "schema": SCHEMA,
        "title": difference.title,
        "unit": difference.unit,
        "before": difference.before,
        "after": difference.after,
        "cpus": difference.cpus and [round(cpus, 4) for cpus in difference.cpus],
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
                "by_chance": change.is_chance,
            }
            for change in difference.changes
        ],
    }
    return JSONEncoder(separators=(",", ":")).encode(tree) + "\n"


def _spell(function: Function) -> str:
    return display_name(function)
