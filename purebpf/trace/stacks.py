"""Names of the stacks that calls began with, and that tracepoints were passed with."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from purebpf.closable import Closing
from purebpf.kernel.instruments.call_stacks import CallStacks, call_stacks_request
from purebpf.kernel.instruments.task_filter import TaskFilter
from purebpf.kernel.processes.process_tracker import Followed
from purebpf.kernel.symbolize.symbolizer import Symbolizer
from purebpf.measure.user_stack_session import StackFeed
from purebpf.results import Cause, count_cause
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.model.spelling import spell_location
from purebpf.symbols.frame import is_of_tracepoint

if TYPE_CHECKING:
    from purebpf.kernel.load.object import Object
    from purebpf.kernel.unwind.user_stacks import Trace
    from purebpf.symbols.address_spaces import Earlier

__all__ = ["LOST", "StackNames"]

LOST = "[lost stack]"
_SHARED = ("tasks", "tasks_by_address", "events", "points", "then_point")
_FIRST = 16
"""FIRST_STACK of bpf_src/include/stacks.h."""
_NONE = 0
_LONGEST_S = 3600.0
_KEPT = 4096
"""Named stacks."""
_LOSSES = {
    "stacks_full": (
        ("stacks_full", "stacks_busy", "stacks_crowded"),
        "stacks were dropped: the table of stacks was full",
    ),
    "stacks_forgotten": (
        ("forgotten",),
        "stacks were forgotten: thousands of others came before their calls were shown",
    ),
    "copies_lost": (
        ("refused", "output_full", "output_none", "output_failed"),
        "stacks were cut: user space did not finish them fast enough",
    ),
    "places_taken": (
        ("places_taken",),
        "stacks were lost: too many programs were preempted on one CPU",
    ),
    "sideband_lost": (
        ("sideband_lost",),
        "records of processes and mappings were lost: names may be missing",
    ),
}


class StackNames(Closing):
    """Walks stacks from when it is made until `stop()`, and names them as they are asked for.

    Args:
        tracer: the object of bpf_src/trace.bpf.c, with its programs attached.
        call_graph: how stacks are walked.
        pids: the processes to know at the start; empty for all.
        command_pid: a child that waits to execute a command.
        calls, points: are there system calls, and tracepoints?

    Raises:
        KernelError, NotSupportedError: as `StackTracer` and `Followed`; nothing stays open.
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
        with ExitStack() as stack:
            self._tracer = stack.enter_context(
                CallStacks(
                    call_stacks_request(call_graph, shared, calls=calls, points=points),
                    TaskFilter(),
                    self._earlier,
                )
            )
            python = self._tracer.python
            if python is not None and pids:
                python.interpreters.publish_running(pids)
            self._followed = stack.enter_context(Followed(command_pid))
            self._feed = StackFeed(self._tracer, self._followed)
            self._feed.start(pids or ((command_pid,) if command_pid else ()))
            if python is not None and not (pids or command_pid):
                python.interpreters.publish_running(pause=self._feed.collect)
            self._symbolizer = Symbolizer(self._followed.spaces)
            self._symbolizer.python = python
            self._owned = stack.pop_all()
        self._forgotten = 0
        self._named = lru_cache(_KEPT)(self._name)
        self._named_kernel = lru_cache(_KEPT)(self._name_kernel)

    def _earlier(self, pid: int, time_ns: int) -> Earlier | None:
        return self._followed.spaces.earlier(pid, time_ns)

    @property
    def fds(self) -> set[int]:
        """Readable when `drain()` is due."""
        return self._feed.fds

    def pause_s(self) -> float:
        """After how long `drain()` is due at the latest: a process becomes Python silently."""
        python = self._tracer.python
        return _LONGEST_S if python is None else python.interpreters.look_again_s()

    def drain(self) -> None:
        """Take in what processes do, and finish stacks."""
        self._feed.drain()

    def name(self, call: Any) -> tuple[str, ...]:
        """The functions of the stack of a `struct call`, the innermost first; () without one.

        That of the command's own execve is this program's, and is left out.
        """
        if call.is_awaited:
            return ()
        return self._name_user(call.stack, call.event.tgid, call.caller)

    def name_point(self, point: Any) -> tuple[str, ...]:
        """The functions of the kernel, then of the program, that a `struct point` was passed in."""
        event = point.event
        kernel = self._named_kernel(point.kernel_stack)
        return (*kernel, *self._name_user(point.stack, event.tgid, event.comm))

    def _name_kernel(self, number: int) -> tuple[str, ...]:
        if number == _NONE:
            return ()
        addresses = self._tracer.kernel_stack(number) if number >= _FIRST else None
        if addresses is None:
            self._forgotten += number >= _FIRST
            return (LOST,)
        places = self._symbolizer.kernel_stack(addresses)
        return tuple(spell_location(place) for place in places if not is_of_tracepoint(place))

    def _name_user(self, number: int, pid: int, comm: str) -> tuple[str, ...]:
        if number == _NONE:
            return ()
        if number < _FIRST:
            return (LOST,)
        trace = self._tracer.trace(number)
        if trace is None:  # its copy is in a ring: it was written before the call's record
            self._tracer.finish()
            trace = self._tracer.trace(number)
        if trace is None:
            self._forgotten += 1
            return (LOST,)
        return self._named(trace, pid, comm, self._followed.spaces.version(pid))

    def _name(self, trace: Trace, pid: int, comm: str, version: int) -> tuple[str, ...]:
        del version  # of what is mapped: another one, other names
        ends = {_FIRST: (trace.reason, trace.guessed)}
        stack = Stacks({_FIRST: trace.addresses}, self._symbolizer, ends).user(_FIRST, pid, comm)
        return tuple(map(spell_location, stack or ()))

    def stop(self) -> None:
        """Stop walking; what was walked can still be named."""
        self._tracer.stop()

    def causes(self) -> tuple[Cause, ...]:
        """Why stacks are missing or cut, zero or not.

        Raises:
            KernelError: a map could not be read.
        """
        stats = self._tracer.stats() | {
            "sideband_lost": self._followed.lost,
            "forgotten": self._forgotten,
        }
        causes = []
        for name, (fields, text) in _LOSSES.items():
            count = sum(stats[field] for field in fields)
            causes.append(count_cause(name, count, text))
        return tuple(causes)

    def close(self) -> None:
        """Give back what it holds; again is harmless."""
        self._owned.close()
