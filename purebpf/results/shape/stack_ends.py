"""The ends of a profile's user stacks, in shares of their weight."""

from __future__ import annotations

from collections import Counter

from purebpf.results.model.profile import Profile
from purebpf.tuples import NamedTuple

__all__ = ["StackEnds", "describe_lost_callers", "spell_percent", "stack_ends"]

_UNVERIFIED = "unverified"
_REASONS = 3


class StackEnds(NamedTuple):
    """Weights of user stacks.

    Attributes:
        total: of all that were not lost.
        guessed: of whole ones with frames that followed frame pointers.
        cuts: of each reason for a cut, heaviest first.
    """

    total: int
    guessed: int
    cuts: tuple[tuple[str, int], ...]

    @property
    def cut(self) -> int:
        """The shares of stacks that are not whole, by reason."""
        return sum(weight for _, weight in self.cuts)

    @property
    def whole(self) -> int:
        """The share of stacks that reach their roots without a guess."""
        return self.total - self.cut - self.guessed


def stack_ends(profile: Profile) -> StackEnds | None:
    """Count the ends of stacks; None for a profile that does not have them."""
    if not profile.about.get("call_graph"):
        return None
    total = guessed = 0
    cuts: Counter[str] = Counter()
    for row in profile.rows():
        if not row.user:
            continue
        total += row.weight
        end = row.marks.end
        if end.cut:
            cuts[end.cut] += row.weight
        elif end.guessed:
            guessed += row.weight
    return StackEnds(total, guessed, tuple(cuts.most_common()))


def describe_lost_callers(profile: Profile) -> str:
    """Return `callers in 21 % of the user stacks (copy_lost, read_fault)`; "" if none are missing.

    Of stacks by frame pointers it is not known whether they lack any. Where the loss counts them,
    it says so itself.
    """
    ends, causes = stack_ends(profile), profile.loss.causes
    if ends is None or any(cause.name == "stacks_cut" for cause in causes):
        return ""
    said = {_UNVERIFIED}
    if any(cause.name == "truncated" and cause.lost for cause in causes):
        said.add("too_deep")
    cuts = [(why, weight) for why, weight in ends.cuts if why not in said]
    if not cuts:
        return ""
    reasons = [why for why, _ in cuts[:_REASONS]] + ["..."] * (len(cuts) > _REASONS)
    share = spell_percent(sum(weight for _, weight in cuts), ends.total)
    return f"callers in {share} % of the user stacks ({', '.join(reasons)})"


def spell_percent(part: int, whole: int) -> str:
    """Return a share as a whole number, which is 0 and 100 only of nothing and all."""
    percent = 100 * part / whole
    if 0 < percent < 1 or 99 < percent < 100:  # noqa: PLR2004
        return f"{percent:.1f}" if 0.1 <= percent <= 99.9 else ("<0.1" if percent < 1 else ">99.9")
    return f"{percent:.0f}"
