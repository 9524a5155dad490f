"""From the maps' contents to a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from purebpf.results import Labels, Profile, Slots
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.model.profile import NO_MARKS, Marks
from purebpf.results.model.stack_end import WHOLE

__all__ = ["fill"]


def fill(
    profile: Profile,
    counts: Iterable[tuple[Any, int]],
    stacks: Stacks,
    cgroup: Callable[[int], str],
    first: int | None = None,
    *,
    left_out: int = 0,
) -> int:
    """Add every count to the profile.

    Args:
        profile: gets a row for each of `counts`.
        counts: (struct count_key, samples), as `bpf_src/profile.bpf.c` declares them.
        stacks: named stacks.
        cgroup: of a process.
        first: the slot of the start of sampling; None where times do not matter.
        left_out: a process whose samples do not become rows; 0: none.

    Returns:
        The samples of that process.
    """
    own = 0
    for key, samples, slots in _with_slots(counts, first):
        if left_out and key.tgid == left_out:
            own += samples
            continue
        labels = Labels(key.comm, key.tgid, key.tid, cgroup=cgroup(key.tgid))
        user_stack = stacks.user(key.user_stack, key.tgid, key.comm)
        end = stacks.end(key.user_stack, key.tgid, key.comm)
        marks = Marks(end=end) if end != WHOLE else NO_MARKS
        kernel_stack = stacks.kernel(key.kernel_stack)
        profile.add(user_stack, kernel_stack, samples, labels, slots, marks=marks)
    return own


def _with_slots(
    counts: Iterable[tuple[Any, int]], first: int | None
) -> Iterable[tuple[Any, int, Slots]]:
    if first is not None:
        from purebpf.tools.profile.timeline import sum_by_stack

        return sum_by_stack(counts, first)
    return ((key, samples, ()) for key, samples in counts)
