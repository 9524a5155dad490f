"""Turns the counts of the programs into profiles. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from purebpf.results import Labels, Profile
from purebpf.results.model.profile import Marks
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.instruments.memory_tracer import Site
    from purebpf.results.build.stored_stacks import Stacks

__all__ = ["MemoryUse", "fill", "since", "totals"]

_GROWN = frozenset({"mmap", "file mmap", "brk"})
_FAULTS = frozenset({"minor fault", "major fault"})
_MALLOC = "malloc"
_MOST = (1 << 62) - 1
"""Bytes of all rows."""


class MemoryUse(NamedTuple):
    """Four profiles of one run, of the same `about` and `loss`.

    Attributes:
        unfreed: bytes that were allocated during the run and not freed until its end.
        allocated: bytes that were allocated, whether or not they were freed.
        grown: bytes that mmap, mremap and brk added to address spaces.
        faults: page faults, in their number.
    """

    unfreed: Profile
    allocated: Profile
    grown: Profile
    faults: Profile


class _Amount(NamedTuple):
    """Events, and their weight."""

    times: int
    weight: int


def totals(sites: Iterable[Site]) -> dict[str, int]:
    """Sums of everything, for `Profile.about`: 2^62 at most, which saved profiles may have."""
    sums: Counter[str] = Counter()
    for site in sites:
        if site.kind == _MALLOC:
            sums["allocations"] += site.times
            sums["allocated_bytes"] += site.size
            sums["freed"] += site.freed
            sums["freed_bytes"] += site.freed_size
            sums["unfollowed"] += site.unfollowed
            sums["unfollowed_bytes"] += site.unfollowed_size
        elif site.kind in _FAULTS:
            sums[f"{site.kind.replace(' ', '_')}s"] += site.times
        elif site.kind in _GROWN:
            sums["growths"] += site.times
            sums["grown_bytes"] += site.size
        else:
            sums["reserved_bytes"] += site.size
    sums["unfreed"] = sums["allocations"] - sums["freed"] - sums["unfollowed"]
    sums["unfreed_bytes"] = sums["allocated_bytes"] - sums["freed_bytes"] - sums["unfollowed_bytes"]
    names = (
        *("allocations", "allocated_bytes", "freed", "freed_bytes", "unfreed", "unfreed_bytes"),
        *("growths", "grown_bytes", "reserved_bytes", "minor_faults", "major_faults"),
    )
    return {name: min(max(0, sums[name]), _MOST) for name in names}


def since(now: Iterable[Site], before: Iterable[Site]) -> list[Site]:
    """Return the counts between two looks; each site comes once."""
    earlier = {site.key: site for site in before}
    return [site.minus(earlier[site.key]) if site.key in earlier else site for site in now]


def fill(
    profile: Profile,
    profile_name: str,
    sites: Iterable[Site],
    stacks: Stacks,
    cgroup: Callable[[int], str],
) -> int:
    """Add the rows of one of `MemoryUse`; returns how many claim more than they can have.

    The sum of all rows stays below 2^63, which formats can hold: the rows share half of it, so that
    a process with its own malloc, which gives any size, takes nothing from others.

    Args:
        profile: gets them.
        profile_name: a field of `MemoryUse`.
        sites: of all kinds; a stack may come several times.
        stacks: named stacks.
        cgroup: of a process.
    """
    amount = _AMOUNTS[profile_name]
    sums: defaultdict[tuple[str, int, str, int], _Amount] = defaultdict(lambda: _Amount(0, 0))
    for site in sites:
        times, weight = amount(site)
        if times > 0:
            key = site.comm, site.pid, site.kind, site.stack
            sums[key] = _Amount(sums[key].times + times, sums[key].weight + weight)
    most = _MOST // max(1, len(sums))
    cut = 0
    for (comm, pid, kind, stack), (times, claimed) in sums.items():
        weight = min(max(0, claimed), most)
        cut += weight != claimed
        state = "" if kind == _MALLOC else kind
        labels = Labels(comm, pid, cgroup=cgroup(pid), state=state)
        marks = Marks(times=times, end=stacks.end(stack, pid, comm))
        profile.add(stacks.user(stack, pid, comm), (), weight, labels, marks=marks)
    return cut


def _unfreed(site: Site) -> _Amount:
    if site.kind != _MALLOC:
        return _Amount(0, 0)
    return _Amount(
        site.times - site.freed - site.unfollowed,
        site.size - site.freed_size - site.unfollowed_size,
    )


def _allocated(site: Site) -> _Amount:
    return _Amount(site.times, site.size) if site.kind == _MALLOC else _Amount(0, 0)


def _grown(site: Site) -> _Amount:
    return _Amount(site.times, site.size) if site.kind in _GROWN else _Amount(0, 0)


def _faults(site: Site) -> _Amount:
    return _Amount(site.times, site.times) if site.kind in _FAULTS else _Amount(0, 0)


_AMOUNTS: Mapping[str, Callable[[Site], _Amount]] = {
    "unfreed": _unfreed,
    "allocated": _allocated,
    "grown": _grown,
    "faults": _faults,
}
