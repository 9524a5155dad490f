"""The live part: times calls, adds them up, and makes events of the slow ones."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cached_property
from typing import TYPE_CHECKING, Self

from purebpf.errors import NotSupportedError
from purebpf.measure.event_session import Ending, EventSession, loss_of
from purebpf.measure.target_ends import first_pids
from purebpf.observe.instruments import sched_compat, stack_maps
from purebpf.observe.instruments.event_stream import Record, StreamRequest
from purebpf.observe.processes.cgroup_ids import CgroupIds
from purebpf.tools.latency.attaching import Attacher, Target
from purebpf.tools.latency.calls import Branch, Call, Interval, LatencyRow
from purebpf.tools.latency.functions import Pair, User, Wanted, find_functions, find_pair
from purebpf.tools.latency.limits import describe_limits
from purebpf.tools.latency.request import GROUPINGS, MOST_ARGUMENTS, LatencyOptions, parse_grouping
from purebpf.tools.latency.scale import Scale
from purebpf.tools.latency.sums import Key, Sum, branches, differences, make_rows, merge

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.symbols.address_spaces import Earlier
    from purebpf.tools.latency.stacks import CallerNames

__all__ = ["CallLatency"]

_LOSSES = {
    "returns_missed": "calls were over without a return: by longjmp, an exception, a panic, or the "
    "end of a thread",
    "unfinished": "note: calls that their thread exited in, or executed a program",
    "in_flight": "note: calls were in flight when the run ended",
    "too_deep": "calls were not timed: they were made in 64 others of the thread",
    "states_full": "calls were not timed: the kernel had no memory for the state of a task",
    "rows_full": "calls were not added up: no row was left. Raise --map-entries",
    "nodes_full": "calls were not added to the tree: no path was left. Raise --map-entries",
    "probes_missed": "times the kernel did not run a program at a probe: it was inside of another, "
    "or had no place to follow a return",
    "threads_left": "processes went on without the thread of their probes: calls of up to a second "
    "were not seen",
    "outside_namespace": "note: calls are of tasks without an ID in this PID namespace",
}
_MACHINE = "x86_64"
_TASKS = 4096
"""Tasks in calls at the same time, on kernels without task storage (before Linux 5.11): 12 MB."""
_LOOK_S = 1.0
"""Between looks at whether processes still have the threads that their probes belong to."""
_NS_PER_MS = 1_000_000
_SIGN = 1 << 63
_NEVER = (1 << 64) - 1


class CallLatency(EventSession[Call | Interval]):
    """Times calls from when its context is entered until `stop()`.

    Args:
        options: which calls, and of whom.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Attributes:
        targets: the functions and pairs that the words matched.
        rows: once it is stopped, all calls added up, those that took most time first.
        branches: the same by path, with `options.time`; callers before the functions they call.
        elapsed_s: how long it took.
        walking: once it is stopped, how stacks were walked, and why so.

    Raises, when it is entered: as `EventSession`; ValueError, an option that is none;
        AttachError, there is no such function, or it cannot be traced.
    """

    explained = _LOSSES

    def __init__(self, options: LatencyOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._grouping = parse_grouping(options.by)
        self._cgroups = CgroupIds()
        self._before: dict[Key, Sum] = {}
        self._interval_at = 0.0
        self._stacks: CallerNames | None = None
        self.walking: Mapping[str, object] = {}
        self.targets: list[Target] = []
        self.rows: tuple[LatencyRow, ...] = ()
        self.branches: tuple[Branch, ...] = ()
        self.elapsed_s = 0.0

    def request(self) -> StreamRequest:
        """The programs of bpf_src/latency.bpf.c."""
        options, grouping = self._options, self._grouping
        if (machine := os.uname().machine) != _MACHINE:
            raise NotSupportedError("purebpf latency", f"it is for x86-64; this CPU is {machine}")
        if bool(options.functions) == bool(options.pairs):
            raise ValueError("functions or pairs required, not both")
        if options.pairs and (options.time or grouping.kind == "ret"):
            raise ValueError("pairs of events have no results or call tree")
        if options.functions and grouping.argument > MOST_ARGUMENTS:
            raise ValueError(f"arguments of functions are known to arg{MOST_ARGUMENTS}")
        self.targets = [find_pair(pair, options.pids) for pair in options.pairs]
        if grouping.argument:
            pairs = [pair for pair in self.targets if isinstance(pair, Pair)]
            if any(isinstance(pair.begin, str) for pair in pairs):
                raise ValueError("arguments are of functions and static probes")
        results = grouping.kind == "ret"
        wanted = Wanted(not options.only_count, results, tuple(options.pids or ()))
        self.targets += find_functions(options.functions, wanted)
        slower = options.slower_ms
        return StreamRequest(
            "latency",
            ("call_event",),
            () if options.only_count else ("end_task", "on_exec"),
            {
                "grouping": GROUPINGS.index(grouping.kind),
                "argument": grouping.argument,
                "half_words": grouping.bits == 32,  # noqa: PLR2004
                "unit_ns": options.unit_ns,
                "linear_units": options.linear,
                "only_count": options.only_count,
                "with_tree": options.time,
                "slower_ns": _NEVER if slower is None else round(slower * _NS_PER_MS),
            },
            self._sizes(),
            prepare=self._attach,
        )

    def _sizes(self) -> dict[str, int]:
        options = self._options
        sizes = {"nodes": options.rows if options.time else 1}
        sizes["rows"] = options.rows * (os.cpu_count() or 1)
        if not sched_compat.has_task_storage():
            sizes["tasks_by_address"] = _TASKS
        return sizes

    def _attach(self, tracer: Object) -> ExitStack:
        options = self._options
        pids = () if options.tree else options.pids
        with ExitStack() as stack:
            if options.stacks:
                from purebpf.tools.latency.stacks import load_stacks  # most runs have no stacks

                self._walker = load_stacks(tracer, options.call_graph, self._earlier)
                tracer = stack.enter_context(self._walker).object
            self._attacher = Attacher(
                *(tracer, pids),
                returns=not options.only_count,
                argument=self._grouping.argument if options.pairs else 0,
            )
            self._attacher.attach(self.targets)
            stack.enter_context(closing(self._attacher))
            return stack.pop_all()

    def _earlier(self, pid: int, time_ns: int) -> Earlier | None:
        return self._stacks.earlier(pid, time_ns) if self._stacks else None

    def begin(self, owned: ExitStack) -> None:
        """Walk stacks, if the user wants them, now that functions are traced: the start takes a
        while.
        """
        options = self._options
        if options.stacks:
            from purebpf.tools.latency.stacks import CallerNames

            pids = first_pids(options.pids, tree=options.tree)
            names = CallerNames(self._walker, pids, self._command_pid)
            self._stacks = owned.enter_context(names)

    def __enter__(self) -> Self:
        super().__enter__()
        self._interval_at = self._started_s
        return self

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways of tracing functions of the kernel."""
        return tuple(self._attacher.ways)

    @cached_property
    def untimed(self) -> tuple[User, ...]:
        """Functions whose calls are only counted, as their ends are unknown."""
        return tuple(one for one in self.targets if isinstance(one, User) and one.problem)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences about functions that are not timed, or not to their ends."""
        away = [one.name for one in self.targets if isinstance(one, User) and one.jumps_away]
        return describe_limits({one.name: one.problem for one in self.untimed}, away)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of functions and pairs, by number."""
        return tuple(target.name for target in self.targets)

    def sources(self) -> Collection[int]:
        """The rings of stacks."""
        return self._stacks.fds if self._stacks else ()

    def pause_s(self) -> float:
        """Until an interval is over, or stacks want to look at processes."""
        pauses = [self._stacks.pause_s() if self._stacks else super().pause_s()]
        if self._options.pids:
            pauses.append(_LOOK_S)
        if self._options.interval_s is not None:
            due = self._interval_at + self._options.interval_s
            pauses.append(max(0.0, due - self._drained_at))
        return min(pauses)

    def drain(self) -> Iterator[Call | Interval]:
        """The slow calls since the last call of this, and the interval, if it is over."""
        self._attacher.follow_threads(self.targets)
        if self._stacks:
            self._stacks.drain()
        yield from super().drain()
        every_s = self._options.interval_s
        if every_s is not None and time.monotonic() >= self._interval_at + every_s:
            yield self._interval()

    def _interval(self) -> Interval:
        now = time.monotonic()
        sums = self._read()
        changed = differences(sums, self._before, self.scale)
        elapsed_s, self._interval_at = now - self._interval_at, now
        self._before = sums
        return Interval(time.time_ns(), elapsed_s, self._rows(changed))

    @property
    def scale(self) -> Scale:
        """The bounds of the buckets."""
        return Scale(self._options.unit_ns, self._options.linear)

    def make_event(self, record: Record) -> Call:
        """A slow call."""
        fields = record.fields
        head, result = fields.head, fields.result
        stacks = self._stacks
        return Call(
            self.wall_ns(head.time_ns),
            head.tgid,
            head.tid,
            head.uid,
            head.comm,
            self.names[fields.function],
            fields.took_ns,
            (result ^ _SIGN) - _SIGN if fields.has_result else None,
            fields.depth,
            stacks.kernel(fields.kernel_stack) if stacks else (),
            stacks.user(fields.user_stack, head.tgid, head.comm) if stacks else (),
        )

    def end(self) -> Ending[Call | Interval]:
        """End it, and add up; its resources stay open. Raises as `stop` does."""
        self._attacher.follow_threads(())  # the last look
        self._attacher.detach()
        self.stream.stop()
        self.elapsed_s = time.monotonic() - self._started_s
        if self._stacks:
            self._stacks.stop()
            self._stacks.drain()
        events = list(super().drain())
        if self._options.interval_s is not None:
            events.append(self._interval())
        self.rows = self._rows(self._read())
        if self._options.time:
            nodes = dict(self.stream.object.maps["nodes"].items())
            self.branches = branches(nodes, self.names)
        loss = loss_of(self._losses(), self.explained)
        if self._stacks:
            loss = loss._replace(causes=(*loss.causes, *self._stacks.causes()))
            self.walking = self._stacks.about
        return Ending(tuple(events), loss)

    def _read(self) -> dict[Key, Sum]:
        return merge(self.stream.object.maps["rows"].items())

    def _rows(self, sums: dict[Key, Sum]) -> tuple[LatencyRow, ...]:
        rows = make_rows(sums, self.names, self._grouping, self._cgroups.label)
        untimed = {function.name for function in self.untimed}
        return tuple(row.without_times() if row.function in untimed else row for row in rows)

    def _losses(self) -> dict[str, int]:
        maps = self.stream.object.maps
        losses = self.stream.losses() | stack_maps.sum_up(maps["stats"])
        losses["returns_missed"] = max(0, losses["returns_missed"] - losses["returns_late"])
        over = losses["ended"] + losses["returns_missed"] + losses["unfinished"]
        over += losses["too_deep"] + losses["states_full"] + losses["counted"]
        losses["in_flight"] = 0 if self._options.only_count else max(0, losses["begun"] - over)
        losses["probes_missed"] = self._attacher.missed()
        losses["threads_left"] = self._attacher.left
        if self._stacks:
            losses["events_full"] += self._walker.object.globals["events_full"]
        return losses
