"""`CallStacks`: the program of bpf_src/call_stacks.bpf.c, which adds stacks to traced calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.kernel.instruments import stack_maps
from purebpf.kernel.instruments.stack_tracer import StackRequest, StackTracer
from purebpf.kernel.unwind.tickets import RecentTraces

if TYPE_CHECKING:
    from purebpf.kernel.instruments.task_filter import TaskFilter
    from purebpf.kernel.maps.map import Map
    from purebpf.kernel.unwind.programs import EarlierLookup
    from purebpf.kernel.unwind.user_stacks import Finished, Trace

__all__ = ["CallStacks", "call_stacks_request"]

_PROGRAM = "stack_call"
_STACKS = 16384
_UNASKED = 16384
_COPIES, _PAGES = 1000, 512
"""Calls come in bursts, before a walk has its tables."""


class CallStacks(StackTracer):
    """Walks the stack of each traced call, from `start()` to `stop()`.

    The programs that trace calls are attached before it: at a tracepoint, programs run in the order
    in which they were attached. Stacks are asked for one by one, and forgotten after a while, so
    that a trace of days needs no more memory than one of a minute.
    """

    def __init__(
        self, request: StackRequest, whose: TaskFilter, earlier: EarlierLookup | None = None
    ) -> None:
        self._recent = RecentTraces(_UNASKED)
        super().__init__(request, whose, earlier)

    def take(self, finished: Iterable[tuple[Finished, int]]) -> None:
        """Keep stacks that were finished until they are asked for."""
        self._recent.take(finished)

    def trace(self, number: int) -> Trace | None:
        """The stack of a number or ticket; None: it is not finished yet, or was forgotten.

        A ticket can be asked for once.

        Raises:
            KernelError: the map could not be read.
        """
        if (finished := self._recent.redeem(number)) is not None:
            return finished
        stack = self.maps["stacks"].get(number)
        return None if stack is None else stack_maps.trace(stack)

    def attach(self, links: ExitStack) -> None:
        """Attach to the start of system calls."""
        links.enter_context(self._object.programs[_PROGRAM].attach())


def call_stacks_request(call_graph: str, shared: Mapping[str, Map]) -> StackRequest:
    """How stacks are walked, with the maps of the programs that trace calls."""
    return StackRequest(
        *("call_stacks", (_PROGRAM,), {"python": True}, {"stacks": _STACKS}, call_graph),
        copies=_COPIES,
        pages=_PAGES,
        shared=shared,
        recent=True,
    )
