"""`ThreadTime`: the time of threads by place, from switch to switch, for any presentation."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from purebpf.closable import Closing
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.measure import targets
from purebpf.measure.in_flight import Sleepers, open_spans
from purebpf.measure.options import StackOptions, TargetOptions
from purebpf.measure.privileges import needing
from purebpf.measure.process_watch import ProcessWatch
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import first_pids, follow_descendants
from purebpf.observe.instruments.call_graph import PYTHON_PROCESSES, describe_walking, not_copied
from purebpf.observe.instruments.offcpu_tracer import Listed, Switches
from purebpf.observe.instruments.stack_maps import max_depth
from purebpf.results.build.offcpu_rows import STATES, Place, Span, merge_spans, numbers, since
from purebpf.syscall import host_clock
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_event import Event
    from purebpf.observe.runtimes.cpython.python_tables import PythonTables
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.symbols.address_spaces import Earlier

__all__ = ["Request", "ThreadTime", "Times"]

_LONG_AGO_S = 2.5
_PYTHON_THREADS = 16384
_TABLES_S = 0.3
"""At most, until the tables are there that the first stacks need."""

T = TypeVar("T")


class Request(TargetOptions, StackOptions):
    """The target, and which of its time. Empty tuples and None mean: no restriction.

    `states` are letters of `purebpf.results.build.offcpu_rows.STATES`. Times from `threshold_ns` on
    are recorded one by one. `split` traces wake-ups, `wakers` remembers them. `on_cpu` measures the
    time that threads run, and samples their places `frequency` times a second. `call_graph` is how
    user stacks are
    walked: "auto", "tables", "deep", "copy" or "fp". `python` reads the frames of Python functions,
    with `python_lines` also their lines; `native` includes frames of the interpreter itself;
    `async_tasks` adds the tasks that await the running one.
    """

    user_threads: bool = True
    kernel_threads: bool = True
    user_stacks: bool = True
    kernel_stacks: bool = True
    states: str = "SDITtPWG"
    threshold_ns: int | None = None
    min_ns: int = 0
    max_ns: int | None = None
    split: bool = False
    wakers: bool = False
    on_cpu: bool = False
    frequency: int = 0
    duration_s: float | None = None
    ring_size: int = 1 << 20
    async_tasks: bool = False


class Times(NamedTuple):
    """The result of a run.

    Attributes:
        spans: by place: sums, and open spans at the end.
        singles: times at or above the threshold, in the order of their ends.
        samples: how often each place was sampled.
        traces: stacks by number.
        about_stacks: how user stacks were walked, for `Profile.about`.
        stats: counters of the programs.
        started_ns: on CLOCK_MONOTONIC, as
        ended_ns.
        undescribed: threads that were off when the run began, without one of their stacks.
        left_out: threads in flight that were too many.
        are_shown: whether the kernel shows where such threads were in user code.
        side_band_lost: records of processes and mappings that were lost.
        max_depth: the most frames of a stack in the kernel.
    """

    spans: dict[Place, Span]
    singles: list[tuple[Place, Span]]
    samples: dict[Place, int]
    traces: dict[int, Trace]
    about_stacks: Mapping[str, object]
    stats: Mapping[str, int]
    started_ns: int
    ended_ns: int
    undescribed: int
    left_out: int
    are_shown: bool
    side_band_lost: int
    max_depth: int


class ThreadTime(Closing):
    """Traces from when its context is entered until `stop()`.

    Args:
        request: the target.
        command_pid: a child that waits to execute a command (`purebpf.measure.child`). It is traced
            from its execve on, with everything it forks.

    Attributes, once it is entered:
        watch: the processes of the run.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused a call; the text names it, with advice.
        NotSupportedError: the kernel lacks a required feature.
    """

    def __init__(self, request: Request, command_pid: int = 0) -> None:
        self.request = request
        self._command_pid = command_pid
        self._singles: list[tuple[Place, Span]] = []
        self._traces: dict[int, Trace] = {}
        self._looked_s = 0.0
        self._looked_at: Times | None = None
        self._single_sums: dict[Place, Span] = {}
        self._summed = 0
        self._events: PerfEvents | None = None
        self._owned = ExitStack()

    @property
    def event(self) -> Event | None:
        """The sampled event."""
        return None if self._events is None else self._events.event

    @property
    def python(self) -> PythonTables | None:
        """The reader of Python frames; None if there is none."""
        return self._switches.python

    def __enter__(self) -> Self:
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._attach(stack)
            self._owned = stack.pop_all()
        return self

    def _attach(self, stack: ExitStack) -> None:
        request = self.request
        with targets.make_task_filter(
            request, command_pid=self._command_pid, tree=request.tree
        ) as whose:
            request = self.request = request._replace(pids=whose.pids)
            switches = Switches(
                self._settings(),
                self._sizes(),
                whose._replace(own_pid=os.getpid()),
                samples=request.on_cpu,
                call_graph=request.call_graph,
                earlier=self._earlier,
                native=request.native,
            )
            self._switches = stack.enter_context(switches)
        if request.on_cpu:
            events = PerfEvents.sampling(request.frequency, cpus=request.cpus or None, disabled=1)
            self._events = stack.enter_context(events)
            switches.sample(events)
        pids = first_pids(request.pids, tree=request.tree)
        self.watch = stack.enter_context(ProcessWatch(switches, pids, self._command_pid))
        self._start()
        self.watch.followed.snapshot(pids, self.watch.collect)
        self._drain()
        self._start_anew()
        self._find_sleepers()
        if self._start_anew():  # the threads may not have run before
            self._find_sleepers()

    def _start(self) -> None:
        """Trace from now on."""
        request, switches = self.request, self._switches
        self._before, self._lost_before = switches.stats(), self.watch.followed.lost
        switches.start()
        if request.tree and request.pids:
            follow_descendants(request.pids, switches.follow)
        if self._events is not None:
            self._events.enable()
        self._drain()  # while walks still miss everything

    def _find_sleepers(self) -> None:
        """Find who has been off a CPU since before the start."""
        request = self.request
        self._sleepers = Sleepers(
            self._switches,
            self._is_wanted,
            walk=request.user_stacks,
            only_listed=bool(request.cpus),
        )
        self._drain()

    def _start_anew(self) -> bool:
        """Start again with tables, if stacks were cut for lack of them; whether it was so.

        A thread may switch 10,000 times until they are there: they take some 30 ms of a CPU, and
        a busy machine has them after 200. Few of these stacks can be copied.
        """
        switches, walking = self._switches, self._switches.walking
        if self._command_pid or self.request.tree or switches.call_graph.mode == "copy":
            return False
        if walking is None or not_copied(switches.stats()) == not_copied(self._before):
            return False
        deadline = time.monotonic() + _TABLES_S
        while walking.drain() and time.monotonic() < deadline:
            self.watch.catch_up()
        self._stop()
        switches.forget_tasks()
        self._forget_counts()
        self._start()
        return True

    def _forget_counts(self) -> None:
        self._switches.forget_counts()
        self._singles.clear()
        self._traces = {}

    def _earlier(self, pid: int, time_ns: int) -> Earlier | None:
        return self.watch.earlier(pid, time_ns)

    def _settings(self) -> dict[str, Any]:
        request = self.request
        states = "".join({*request.states, "?"})  # what that is, is known later
        settings = {
            "user_stacks": request.user_stacks,
            "python": request.python,
            "python_lines": request.python_lines,
            "python_async": request.async_tasks,
            "kernel_stacks": request.kernel_stacks,
            "split": request.split,
            "wakers": request.wakers,
            "on_cpu_wanted": request.on_cpu,
            "states": sum(1 << STATES.index(letter) for letter in states),
            "min_ns": request.min_ns,
            "user_threads": request.user_threads,
            "kernel_threads": request.kernel_threads,
        }
        if request.threshold_ns is not None:
            settings["threshold_ns"] = request.threshold_ns
        if request.max_ns is not None:
            settings["max_ns"] = request.max_ns
        return settings

    def _sizes(self) -> dict[str, int]:
        request = self.request
        return {
            "sums": request.hash_storage_size,
            "samples": request.hash_storage_size if request.on_cpu else 1,
            "stacks": request.stack_storage_size,
            "direct_samples": 4096 if request.threshold_ns is None else request.ring_size,
            "python_threads": _PYTHON_THREADS if request.python else 1,
            "python_tasks": PYTHON_PROCESSES if request.async_tasks else 1,
        }

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until the duration is over or one of `ends` is readable.

        Returns:
            Whether it is over; False after `at_most_s` seconds when it is not.
        """
        duration_s, switches = self.request.duration_s, self._switches
        over = None if duration_s is None else host_clock.own_s(switches.started_ns) + duration_s
        sources = {switches.fileno()}
        return self.watch.wait(ends, self._drain, over=over, at_most_s=at_most_s, sources=sources)

    def _drain(self) -> None:
        self.watch.catch_up()
        self._singles += self._switches.drain()
        self._switches.finish()

    def stop(self) -> Times:
        """End, and read the counts. The tracer stays open until `close()`.

        Raises:
            KernelError: a map could not be read.
        """
        self._stop()
        self._traces = self._switches.traces()
        return self._times(self._singles)

    def _stop(self) -> None:
        """Stop tracing, and finish the pending stacks."""
        self._switches.stop()
        if self._events is not None:
            self._events.disable()
        self._drain()
        self._switches.finish_all()

    def so_far(self) -> Times:
        """The same of the time until now; the tracing goes on.

        Raises:
            KernelError: a map could not be read.
        """
        self._switches.look()
        self._drain()
        return self._times(self._singles)

    def since_last(self, at_most_s: float = _LONG_AGO_S) -> Times:
        """Return the time since the last call; nothing at the first call, or after a gap.

        Single times are among the sums.

        Raises:
            KernelError: a map could not be read.
        """
        self._switches.look()
        self._drain()
        times = self._times(self._singles[self._summed :])
        self._summed = len(self._singles)
        resolve = self._resolver()  # what was finished then may be stored now
        self._single_sums = merge_spans(resolve([*self._single_sums.items(), *times.singles]))
        spans = merge_spans([*times.spans.items(), *self._single_sums.items()])
        times = times._replace(spans=spans, singles=[])
        before, long_ago = self._looked_at, time.monotonic() - self._looked_s > at_most_s
        self._looked_at, self._looked_s = times, time.monotonic()
        if before is None or long_ago:
            return times._replace(spans={}, samples={})
        samples = Counter(times.samples) - _add_up(resolve(before.samples.items()))
        earlier = merge_spans(resolve(before.spans.items()))
        return times._replace(spans=since(spans, earlier), samples=dict(samples))

    def _times(self, found_singles: Sequence[tuple[Place, Span]]) -> Times:
        switches, request, sleepers = self._switches, self.request, self._sleepers
        listed, all_sums = switches.list_tasks(), list(switches.sums())
        samples = dict(switches.samples()) if request.on_cpu else {}
        switches.finish()  # a stack is copied before anything counts it
        resolve = self._resolver()
        open_times = open_spans(
            listed, sleepers, self._is_wanted, switches, split=request.split, on_cpu=request.on_cpu
        )
        describe = partial(sleepers.describe_spans, split=request.split)
        sums = self._select(describe(resolve(all_sums)))
        singles = self._select(describe(resolve(found_singles)))
        singles.sort(key=_ended_ns)
        spans = merge_spans([*sums, *self._select(resolve(open_times), check=True)])
        counts = _add_up(resolve(samples.items()))
        switches.look_up(numbers([*spans, *counts, *(place for place, _ in singles)]), self._traces)
        before = self._before
        stats = {name: count - before[name] for name, count in switches.stats().items()}
        return Times(
            spans,
            singles,
            counts,
            {**self._traces, **self._finished(), **sleepers.traces},
            describe_walking(switches.call_graph, switches.walking, stats),
            stats,
            switches.started_ns,
            switches.ended_ns,
            sleepers.undescribed,
            sleepers.left_out,
            sleepers.are_shown,
            self.watch.followed.lost - self._lost_before,
            max_depth(),
        )

    def _finished(self) -> Mapping[int, Trace]:
        return self._switches.finished({})[0]

    def _resolver(self) -> Callable[[Iterable[tuple[Place, T]]], Iterator[tuple[Place, T]]]:
        """Return a function that gives places the numbers of stacks that were finished since."""
        _, same = self._switches.finished(self._traces)

        def resolve(places: Iterable[tuple[Place, T]]) -> Iterator[tuple[Place, T]]:
            return ((self._switches.resolve(place, same), what) for place, what in places)

        return resolve

    def _select(
        self, spans: Iterable[tuple[Place, Span]], *, check: bool = False
    ) -> list[tuple[Place, Span]]:
        """Return the spans in the requested states; with `check`, also of the requested
        durations.
        """
        request = self.request
        states = {*request.states, "+"}
        limit_ns = request.max_ns if check and request.max_ns is not None else None
        return [
            (place, span)
            for place, span in spans
            if place.state in states or place.state == "?"
            if not check or place.state == "+" or span.duration_ns >= request.min_ns
            if limit_ns is None or place.state == "+" or span.duration_ns <= limit_ns
        ]

    def _is_wanted(self, task: Listed) -> bool:
        """Return the decision that the programs would have made about a task whose switch they
        missed.
        """
        request, place = self.request, task.place
        if self._command_pid or place.pid in (0, os.getpid()):
            return False
        if request.pids and place.pid not in request.pids:
            return False
        if not self._switches.has_wanted_name(place.pid):
            return False
        if request.tids and place.tid not in request.tids:
            return False
        if not (request.kernel_threads if task.is_kernel_thread else request.user_threads):
            return False
        if request.cpus and task.cpu not in request.cpus:
            return False
        return targets.is_in_scope(place.tid, request)

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()


def _add_up(counts: Iterable[tuple[Place, int]]) -> Counter[Place]:
    total: Counter[Place] = Counter()
    for place, count in counts:
        total[place] += count
    return total


def _ended_ns(single: tuple[Place, Span]) -> int:
    return single[1].ended_ns
