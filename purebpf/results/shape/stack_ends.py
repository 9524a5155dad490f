"""The ends of a profile's user stacks, in shares of their weight."""

from __future__ import annotations

from collections import Counter

from purebpf.results.model.profile import Profile
from purebpf.tuples import NamedTuple

__all__ = ["StackEnds", "stack_ends"]


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
