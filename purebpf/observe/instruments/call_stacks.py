"""`CallStacks`: bpf_src/call_stacks.bpf.c, which adds stacks to traced calls and tracepoints."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.observe.instruments.event_stacks import COPIES, PAGES, STACKS, EventStacks
from purebpf.observe.instruments.stack_tracer import StackRequest

if TYPE_CHECKING:
    from purebpf.loader.maps.map import Map

__all__ = ["CallStacks", "call_stacks_request"]

_AT_CALLS, _AT_POINTS = "stack_call", "stack_point"
_JUMPS = "then_point"
_STEP = 1
"""POINT_STACKED of bpf_src/trace/records.h."""


class CallStacks(EventStacks):
    """Walks the stack of each traced call or tracepoint.

    The programs that trace calls are attached before it: at a tracepoint, programs run in the order
    in which they were attached.
    """

    def attach(self, links: ExitStack) -> None:
        """Attach to the start of system calls; programs of tracepoints jump to theirs."""
        programs = self._object.programs
        if _AT_CALLS in programs:
            links.enter_context(programs[_AT_CALLS].attach())
        if _AT_POINTS in programs:
            self.maps[_JUMPS][_STEP] = programs[_AT_POINTS]


def call_stacks_request(
    call_graph: str, shared: Mapping[str, Map], *, calls: bool = True, points: bool = False
) -> StackRequest:
    """Return the request for walking stacks of calls and tracepoints, with the maps of the
    tracing programs.
    """
    programs = (*((_AT_CALLS,) if calls else ()), *((_AT_POINTS,) if points else ()))
    return StackRequest(
        *("call_stacks", programs, {"python": True}, {"stacks": STACKS}, call_graph),
        copies=COPIES,
        pages=PAGES,
        shared=shared,
        recent=True,
    )
