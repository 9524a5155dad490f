"""Names of the stacks that calls began with, and that tracepoints were passed with."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from purebpf.measure.stacks.event_stacks import LOST, EventStackNames
from purebpf.observe.instruments.call_stacks import CallStacks, call_stacks_request
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.symbols.frame import Frame, Unknown, is_of_tracepoint

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object

__all__ = ["LOST", "StackNames"]

_SHARED = ("tasks", "tasks_by_address", "events", "points", "then_point")


class StackNames(EventStackNames):
    """Walks stacks from its creation until `stop()`, and names them on demand.

    Args:
        tracer: the object of bpf_src/trace.bpf.c, with its programs attached.
        call_graph: how stacks are walked.
        pids: the processes to know at the start; empty for all.
        command_pid: a child that waits to execute a command.
        calls, points: are there system calls, and tracepoints?

    Raises:
        KernelError, NotSupportedError: as `CallStacks` and `EventStackNames`.
    """

    def __init__(  # noqa: PLR0913
        self,
        tracer: Object,
        call_graph: str,
        pids: Collection[int],
        command_pid: int,
        *,
        calls: bool = True,
        points: bool = False,
    ) -> None:
        shared = {name: tracer.maps[name] for name in _SHARED if name in tracer.maps}
        request = call_stacks_request(call_graph, shared, calls=calls, points=points)
        super().__init__(CallStacks(request, TaskFilter(), self.earlier), pids, command_pid)

    def name(self, call: Any) -> tuple[str, ...]:
        """The functions of the stack of a `struct call`, the innermost first; () without one.

        The stack of the command's first execve is this program's, and is omitted. The start of a
        call takes its stack: a call without a traced beginning has none.
        """
        if call.is_awaited or not call.entered:
            return ()
        return self.user(call.stack, call.event.tgid, call.caller)

    def name_point(self, point: Any) -> tuple[str, ...]:
        """The functions of the kernel, then of the program, that a `struct point` was passed in."""
        event = point.event
        kernel = self.kernel(point.kernel_stack)
        return (*kernel, *self.user(point.stack, event.tgid, event.comm))

    def without_probe(self, frames: Iterable[Frame | Unknown]) -> Iterable[Frame | Unknown]:
        """Return the frames without the frames of the tracepoint."""
        return (frame for frame in frames if not is_of_tracepoint(frame))
