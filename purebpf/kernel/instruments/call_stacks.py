"""`CallStacks`: bpf_src/call_stacks.bpf.c, which adds stacks to traced calls and tracepoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from purebpf.kernel.instruments import stack_maps
from purebpf.kernel.instruments.stack_tracer import StackRequest, StackTracer
from purebpf.kernel.unwind.tickets import RecentTraces

if TYPE_CHECKING:
    from purebpf.kernel.instruments.task_filter import TaskFilter
    from purebpf.kernel.maps.map import Map
    from purebpf.kernel.unwind.programs import EarlierLookup
    from purebpf.kernel.unwind.user_stacks import Finished, Trace

__all__ = ["CallStacks", "call_stacks_request"]

_AT_CALLS, _AT_POINTS = "stack_call", "stack_point"
_JUMPS = "then_point"
_STEP = 1
"""POINT_STACKED of bpf_src/trace/records.h."""
_STACKS = 16384
_UNASKED = 16384
_COPIES, _PAGES = 1000, 512
"""Calls come in bursts, before a walk has its tables."""


class CallStacks(StackTracer):
    """Walks the stack of each traced call or tracepoint, from `start()` to `stop()`.

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
        """Attach to the start of system calls; programs of tracepoints jump to theirs."""
        programs = self._object.programs
        if _AT_CALLS in programs:
            links.enter_context(programs[_AT_CALLS].attach())
        if _AT_POINTS in programs:
            self.maps[_JUMPS][_STEP] = programs[_AT_POINTS]

    def kernel_stack(self, number: int) -> Sequence[int] | None:
        """The addresses of a kernel stack, the innermost first; None: it was forgotten.

        Raises:
            KernelError: the map could not be read.
        """
        stack: Any = self.maps["stacks"].get(number)
        return None if stack is None else tuple(stack.addresses[: stack.depth])


def call_stacks_request(
    call_graph: str, shared: Mapping[str, Map], *, calls: bool = True, points: bool = False
) -> StackRequest:
    """How stacks of calls and tracepoints are walked, with the maps of the programs that trace."""
    programs = (*((_AT_CALLS,) if calls else ()), *((_AT_POINTS,) if points else ()))
    return StackRequest(
        *("call_stacks", programs, {"python": True}, {"stacks": _STACKS}, call_graph),
        copies=_COPIES,
        pages=_PAGES,
        shared=shared,
        recent=True,
    )
