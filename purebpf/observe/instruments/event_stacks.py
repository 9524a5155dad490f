"""`EventStacks`: the stacks of events that are printed one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.stack_tracer import StackRequest, StackTracer
from purebpf.observe.unwind.tickets import RecentTraces

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.observe.unwind.user_stacks import Finished, Trace

__all__ = ["COPIES", "PAGES", "STACKS", "EventStacks"]

STACKS = 16384
COPIES, PAGES = 1000, 512
"""Events come in bursts, before a walk has its tables."""
_UNASKED = 16384


class EventStacks(StackTracer):
    """Walks the stack of each event, from `start()` to `stop()`.

    Stacks are read one by one, and forgotten after a while, so that a trace of days needs no more
    memory than one of a minute.
    """

    def __init__(
        self, request: StackRequest, whose: TaskFilter, earlier: EarlierLookup | None = None
    ) -> None:
        self._recent = RecentTraces(_UNASKED)
        super().__init__(request, whose, earlier)

    @property
    def object(self) -> Object:
        """The walking object: other programs share its settings and maps."""
        return self._object

    def take(self, finished: Iterable[tuple[Finished, int]]) -> None:
        """Keep finished stacks until they are needed."""
        self._recent.take(finished)

    def trace(self, number: int) -> Trace | None:
        """The stack of a number or ticket; None: it is not finished yet, or was forgotten.

        A ticket is valid once.

        Raises:
            KernelError: the map could not be read.
        """
        if (finished := self._recent.redeem(number)) is not None:
            return finished
        stack = self.maps["stacks"].get(number)
        return None if stack is None else stack_maps.trace(stack)

    def kernel_stack(self, number: int) -> Sequence[int] | None:
        """The addresses of a kernel stack, the innermost first; None: it was forgotten.

        Raises:
            KernelError: the map could not be read.
        """
        stack: Any = self.maps["stacks"].get(number)
        return None if stack is None else tuple(stack.addresses[: stack.depth])

    def attach(self, links: ExitStack) -> None:
        """Do nothing: the tracer of the events attaches the programs."""
