"""`CallStacks`: the program of bpf_src/call_stacks.bpf.c, which adds stacks to traced calls."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.kernel.instruments.stack_tracer import StackRequest, StackTracer

if TYPE_CHECKING:
    from purebpf.kernel.maps.map import Map

__all__ = ["CallStacks", "call_stacks_request"]

_PROGRAM = "stack_call"
_STACKS = 16384
_COPIES, _PAGES = 1000, 512
"""Calls come in bursts, before a walk has its tables."""


class CallStacks(StackTracer):
    """Walks the stack of each traced call, from `start()` to `stop()`.

    The programs that trace calls are attached before it: at a tracepoint, programs run in the order
    in which they were attached.
    """

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
    )
