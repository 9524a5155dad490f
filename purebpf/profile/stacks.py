"""From the maps' contents to a profile: ids to addresses, addresses to names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from purebpf.report import Labels, Profile, Stack
from purebpf.symbols.frame import Frame, Unknown, without_stray_tail

__all__ = ["Names", "fill"]

# enum stack_id of bpf_src/profile.bpf.c
_NONE = 0
_FIRST = 16

Answers = Sequence[Frame | Unknown]


class Names(Protocol):
    """Who knows names: `purebpf.kernel.symbolizer.Symbolizer`."""

    def kernel_stack(self, addresses: Sequence[int]) -> Answers:
        """Name a kernel stack."""
        ...

    def user_stack(self, pid: int, addresses: Sequence[int], comm: str | None = None) -> Answers:
        """Name a user stack."""
        ...


def fill(
    profile: Profile,
    counts: Iterable[tuple[Any, int]],
    stacks: Mapping[int, Sequence[int]],
    names: Names,
) -> None:
    """Add every count to the profile.

    Args:
        profile: gets a row for each of `counts`.
        counts: (struct count_key, samples), as `bpf_src/profile.bpf.c` declares them.
        stacks: addresses by stack id, leaf first.
        names: looks addresses up.
    """

    @cache
    def kernel(number: int) -> Stack | None:
        return _named(number, stacks, names.kernel_stack)

    @cache
    def user(number: int, pid: int, comm: str) -> Stack | None:
        return _named(number, stacks, lambda found: names.user_stack(pid, found, comm))

    for key, samples in counts:
        labels = Labels(key.comm, key.tgid, key.tid)
        user_stack = user(key.user_stack, key.tgid, key.comm)
        profile.add(user_stack, kernel(key.kernel_stack), samples, labels)


def _named(
    number: int,
    stacks: Mapping[int, Sequence[int]],
    look_up: Callable[[Sequence[int]], Answers],
) -> Stack | None:
    """The stack with a number; None for one that was lost."""
    if number == _NONE:
        return ()
    addresses = stacks.get(number)
    if number < _FIRST or addresses is None:
        return None
    return without_stray_tail(look_up(addresses))
