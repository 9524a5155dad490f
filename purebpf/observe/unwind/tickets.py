"""Stacks that user space finished, by the ids that programs gave them in advance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from purebpf.observe.unwind.stack_numbers import StackNumbers, as_completed
from purebpf.observe.unwind.user_stacks import Finished, Trace

__all__ = ["RecentTraces", "Tickets"]

_ID = 8


class Tickets:
    """Stacks for the ids of user_stack_by_ticket() in bpf_src/include/user_stacks.h.

    Each sample has a separate id; equal stacks have one number.
    """

    def __init__(self) -> None:
        self._numbers = StackNumbers()
        self._by_id: dict[int, int] = {}

    @property
    def traces(self) -> Mapping[int, Trace]:
        """The stacks by number."""
        return self._numbers.traces

    def take(self, finished: Iterable[tuple[Finished, int]]) -> None:
        """Add the results of `UserStacks.take`."""
        for sample, _ in finished:
            ticket = int.from_bytes(sample.key[:_ID], "little")
            self._by_id[ticket] = self._numbers.number(sample.trace)

    def same(self, stored: Mapping[int, Trace]) -> dict[int, int]:
        """The numbers of those that the programs have stored, too, with their own for them."""
        return self._numbers.same(stored)

    def resolve(self, number: int, same: Mapping[int, int]) -> int:
        """The number of the stack with an id, or with a number that it had before."""
        number = self._by_id.get(number, number)
        return same.get(number, number)


class RecentTraces:
    """Finished stacks that will be read soon, once each: at most so many unread ones.

    Calls that are filtered out at their end are never asked for.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_id: dict[int, Trace] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def take(self, finished: Iterable[tuple[Finished, int]]) -> None:
        """Add the results of `UserStacks.take`, and forget the oldest."""
        for sample, _ in finished:
            ticket = int.from_bytes(sample.key[:_ID], "little")
            self._by_id[ticket] = as_completed(sample.trace)
        for ticket in list(islice(self._by_id, max(0, len(self._by_id) - self._most))):
            del self._by_id[ticket]

    def redeem(self, ticket: int) -> Trace | None:
        """The stack with an id, which is forgotten; None: it is not here."""
        return self._by_id.pop(ticket, None)
