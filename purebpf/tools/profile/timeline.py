"""The times of samples: counts by slots of time. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from purebpf.results import Slots
    from purebpf.tools.profile.request import ProfileOptions

__all__ = ["Timeline", "slot_length_ns", "sum_by_stack"]

_LENGTHS_NS = (20_000_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000)
"""Each fits into a second: the page draws a column for each second."""
_LONGEST_NS = 1_000_000_000
_SECOND_NS = 1_000_000_000
_PERIODS = 4
_MOST = 1 << 16
"""Counts of a stack in a slot that are kept: 30 MB of Python objects."""

Counts = Iterable[tuple[Any, int]]
"""(struct count_key, samples), as `bpf_src/profile.bpf.c` declares them."""


def slot_length_ns(options: ProfileOptions) -> int:
    """Return the initial length of a slot: four samples of a CPU; 0 without `timeline`."""
    if not options.timeline:
        return 0
    if options.period is not None:
        return _LENGTHS_NS[0]
    least_ns = _PERIODS * _SECOND_NS // options.frequency
    return next((length for length in _LENGTHS_NS if length >= least_ns), _LONGEST_NS)


class Timeline:
    """Counts by stack and slot. Where they are too many, two slots become one; none is lost.

    Args:
        slot_ns: how long a slot of the kernel's keys is.
        most: how many counts to keep.

    Attributes:
        slot_ns: how long one is here.
    """

    def __init__(self, slot_ns: int, most: int = _MOST) -> None:
        self.slot_ns = slot_ns
        self._shift = 0
        self._most = most

    def place(self, key: Any) -> Any:
        """A key of the kernel with its slot here."""
        return key._replace(slot=key.slot >> self._shift) if self._shift else key

    def thin(self, counts: Counter[Any]) -> Counter[Any]:
        """Return a bounded number of counts of placed keys, in longer slots if need be.

        Stacks that are too many themselves stay: slots of an hour do not help.
        """
        while len(counts) > self._most and self.slot_ns < 3600 * _SECOND_NS:
            self._shift += 1
            self.slot_ns *= 2
            fewer: Counter[Any] = Counter()
            for key, samples in counts.items():
                fewer[key._replace(slot=key.slot >> 1)] += samples
            counts = fewer
        return counts


def sum_by_stack(counts: Counts, first: int) -> Iterator[tuple[Any, int, Slots]]:
    """Yield each key without its slot, its samples, and their number in each slot after `first`."""
    by_stack: dict[Any, dict[int, int]] = {}
    for key, samples in counts:
        slots = by_stack.setdefault(key._replace(slot=0), {})
        slot = max(0, key.slot - first)
        slots[slot] = slots.get(slot, 0) + samples
    for key, slots in by_stack.items():
        yield key, sum(slots.values()), tuple(sorted(slots.items()))
