"""Names for the stacks of events that are printed one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.measure.process_watch import ProcessWatch
from purebpf.measure.stacks.started import drain_stacks, start_stacks
from purebpf.observe.instruments.call_graph import describe_walking
from purebpf.results import Cause, count_cause
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.model.spelling import spell_location
from purebpf.unwind.reason import Reason

if TYPE_CHECKING:
    from purebpf.observe.instruments.event_stacks import EventStacks
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.symbols.address_spaces import Earlier
    from purebpf.symbols.frame import Frame, Unknown

__all__ = ["LOST", "EventStackNames"]

LOST = "[lost stack]"
_FIRST = 16
"""FIRST_STACK of bpf_src/include/stacks.h."""
_NONE = 0
_KEPT = 4096
"""Named stacks."""
_NOT_CUT_HERE = (
    *(Reason.COMPLETE, Reason.FINISHED, Reason.FP_GUESS),
    *(Reason.FRAME_POINTERS, Reason.COMPAT32),  # not known
    *(Reason.COPY_LOST, Reason.COPY_REFUSED),  # the programs count them
)
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
    "stacks_cut": (
        ("cut",),
        "stacks lack callers: each ends with the reason",
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


class EventStackNames(Closing):
    """Walks stacks until `stop()`, and names them when needed.

    Args:
        tracer: walks them; closed with this object, which uses its `earlier`.
        pids: the processes to know at the start; empty for all.
        command_pid: a child that waits to execute a command.

    Raises:
        KernelError: as `Followed`; nothing stays open.
    """

    def __init__(self, tracer: EventStacks, pids: Collection[int], command_pid: int) -> None:
        with ExitStack() as stack:
            self._tracer = stack.enter_context(tracer)
            self._watch = stack.enter_context(ProcessWatch(tracer, pids, command_pid))
            self._symbolizer = self._watch.make_symbolizer()
            start_stacks(self._tracer, self._watch, pids or ((command_pid,) if command_pid else ()))
            self._watch.publish_everyone()
            self._owned = stack.pop_all()
        self._forgotten = self._cut = 0
        self._named = lru_cache(_KEPT)(self._name)
        self._named_kernel = lru_cache(_KEPT)(self._name_kernel)

    def earlier(self, pid: int, time_ns: int) -> Earlier | None:
        """Return the mappings of a process at a time."""
        return self._watch.earlier(pid, time_ns)

    @property
    def fds(self) -> set[int]:
        """Readable when `drain()` is due."""
        return self._watch.fds

    def pause_s(self) -> float:
        """After how long `drain()` is due at the latest, see `ProcessWatch.look_again_s`."""
        return self._watch.look_again_s()

    def drain(self) -> None:
        """Read the records of processes, and finish stacks."""
        drain_stacks(self._tracer, self._watch)

    def kernel(self, number: int) -> tuple[str, ...]:
        """The functions of a kernel stack, the innermost first; () without one."""
        return self._named_kernel(number)

    def user(self, number: int, pid: int, comm: str) -> tuple[str, ...]:
        """The functions of a user stack, the innermost first; () without one."""
        if number == _NONE:
            return ()
        if number < _FIRST:
            return (LOST,)
        trace = self._tracer.trace(number)
        if trace is None:  # its copy is in a ring: it was written before the event's record
            self._tracer.finish()
            trace = self._tracer.trace(number)
        if trace is None:
            self._forgotten += 1
            return (LOST,)
        self._cut += trace.reason not in _NOT_CUT_HERE
        return self._named(trace, pid, comm, self._watch.followed.spaces.version(pid))

    def without_probe(self, frames: Iterable[Frame | Unknown]) -> Iterable[Frame | Unknown]:
        """Return a kernel stack without the frames that called the program that walked it."""
        return frames

    def spell(self, frame: Frame | Unknown) -> str:
        """Return the spelling of a frame."""
        return spell_location(frame)

    def _name_kernel(self, number: int) -> tuple[str, ...]:
        if number == _NONE:
            return ()
        addresses = self._tracer.kernel_stack(number) if number >= _FIRST else None
        if addresses is None:
            self._forgotten += number >= _FIRST
            return (LOST,)
        frames = self._symbolizer.kernel_stack(addresses)
        return tuple(map(self.spell, self.without_probe(frames)))

    def _name(self, trace: Trace, pid: int, comm: str, version: int) -> tuple[str, ...]:
        del version  # of what is mapped: another one, other names
        ends = {_FIRST: (trace.reason, trace.guessed)}
        stack = Stacks({_FIRST: trace.addresses}, self._symbolizer, ends).user(_FIRST, pid, comm)
        return tuple(map(self.spell, stack or ()))

    @property
    def about(self) -> dict[str, object]:
        """The way of walking stacks, and the reason."""
        tracer = self._tracer
        return describe_walking(tracer.call_graph, tracer.walking, tracer.stats())

    def stop(self) -> None:
        """Stop walking; walked stacks can still be named."""
        self._tracer.stop()

    def causes(self) -> tuple[Cause, ...]:
        """Why stacks are missing or cut, zero or not.

        Raises:
            KernelError: a map could not be read.
        """
        stats = self._tracer.stats() | {
            "sideband_lost": self._watch.followed.lost,
            "forgotten": self._forgotten,
            "cut": self._cut,
        }
        causes = []
        for name, (fields, text) in _LOSSES.items():
            count = sum(stats[field] for field in fields)
            causes.append(count_cause(name, count, text))
        return (*causes, *self._watch.java_causes())

    def close(self) -> None:
        """Release its resources; again is harmless."""
        self._owned.close()
