"""The live part: load, attach, follow processes, wait, and stop.

What is needed only once the program is attached is imported then: see docs/design/0002-start.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from purebpf import objects
from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.kernel.instruments import stack_maps
from purebpf.kernel.instruments.call_graph import describe_walking, load_walking, read_python
from purebpf.kernel.load.load import load
from purebpf.kernel.maps.map import Map
from purebpf.kernel.perf.perf_event import PerfEvent
from purebpf.kernel.perf.perf_events import PerfEvents
from purebpf.kernel.processes.process_tracker import Followed
from purebpf.measure import targets, wait
from purebpf.measure.privileges import needing
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import TargetEnds, descendants, follow_descendants
from purebpf.profile.request import Options, title
from purebpf.profile.timeline import Timeline, slot_length_ns
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.kernel.cpython.python_tables import PythonTables
    from purebpf.kernel.instruments.process_tree import ProcessTree
    from purebpf.kernel.perf.perf_event import Event
    from purebpf.kernel.symbolize.debug_files import Fetch
    from purebpf.kernel.symbolize.symbolizer import Symbolizer
    from purebpf.kernel.unwind.user_stacks import Trace
    from purebpf.profile.counts_snapshot import CountsSnapshot
    from purebpf.profile.finished_counts import FinishedCounts
    from purebpf.profile.java_maps import JavaMaps
    from purebpf.profile.loss import Clock
    from purebpf.results import Profile
    from purebpf.results.build.stored_stacks import Stacks
    from purebpf.spec import ObjectSpec
    from purebpf.symbols.address_spaces import Earlier
    from purebpf.symbols.budget import Budget

__all__ = ["Profiler"]

_FASTEST_HZ = 5_000_000_000
"""Of events with a period of one: no CPU counts more cycles."""
_SHORTEST_S = 0.1
_CHILDREN_INHERIT = (
    "this kernel does not show its types (CONFIG_DEBUG_INFO_BTF): child processes that lived for "
    "less than a sampling period are missing. Raise -F"
)


class Profiler(Closing):
    """Samples from when its context is entered until `stop()`.

    Args:
        options: what to sample and how; how to print it does not matter here.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`). It
            is sampled from its execve on, with everything it forks, however short that lives.
        fetch: gets debug files that are not on this machine
            (`purebpf.kernel.symbolize.debuginfod`).

    Attributes:
        budget: pays for the names; `budget.stop()` makes what is not named yet stay unnamed.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused something; says what, and what would help.
        NotSupportedError: the kernel, or a pinned map, does not have what is needed.
    """

    def __init__(self, options: Options, command_pid: int = 0, fetch: Fetch | None = None) -> None:
        self._options = options
        self._fetch = fetch
        self._command_pid = command_pid
        self._max_depth = stack_maps.max_depth()
        self._owned = ExitStack()
        self._elapsed_s = self._idle_s = 0.0
        self._taken: CountsSnapshot | None = None
        self._tree: ProcessTree | None = None

    @property
    def event(self) -> Event:
        """What is counted, and why when that is not CPU cycles."""
        return self._events.event

    @property
    def elapsed_s(self) -> float:
        """How long it had sampled at the last `take`."""
        return self._elapsed_s

    @cached_property
    def budget(self) -> Budget:
        """What pays for the names; made when the first is asked for, as a start need not wait."""
        from purebpf.symbols.budget import Budget

        return Budget()

    @cached_property
    def _by_tree(self) -> bool:
        """Whether a program follows children; else those of a command inherit its event.

        That program needs the kernel's types. The events of children that end sooner than their
        first period never count.
        """
        asked = self._options.tree and self._options.pids
        if not (self._command_pid or asked):
            return False
        from purebpf.kernel.instruments.process_tree import is_supported

        return is_supported()

    def __enter__(self) -> Self:
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._attach(stack)
            self._owned = self._owned_python = stack.pop_all()
        return self

    def _attach(self, stack: ExitStack) -> None:
        options = self._options
        with ExitStack() as loading:
            pinned = {
                name: loading.enter_context(Map.open(path))
                for name, path in (
                    ("cgroup_ids", options.cgroup_map),
                    ("mount_namespaces", options.mount_namespace_map),
                )
                if path is not None
            }
            whose = loading.enter_context(targets.make_task_filter(options, thread_option="-L"))
            whose = whose._replace(cpus=())  # the events are on those
            chosen = self._choose_program()
            by_fp = f"{chosen}_fp"
            spec = whose.apply(self._spec().only(chosen, by_fp))
            if self._by_tree:
                from purebpf.kernel.instruments.process_tree import CAPACITY

                spec = spec.set(has_tgids=True).resize(tgids=CAPACITY)
            self._object, self._walking, self._call_graph = load_walking(
                spec,
                options.call_graph if options.user_stacks else "",
                lambda spec: load(spec, maps=pinned),
                stack,
                self._earlier,
                fp_program=by_fp,
            )
            whose.fill(self._object.maps)
            self._follow(stack, whose.namespace)
        self._owned_python = stack
        if options.gil and self._python is None:
            raise NotSupportedError(
                "--gil", "it needs Python frames, so neither --no-python, -K nor --call-graph fp"
            )
        if (options.pids or options.gil) and self._python is not None:
            tree = options.tree and options.pids
            pids = descendants(options.pids) if tree else options.pids
            self._python.interpreters.publish_running(pids)  # else the start does not wait for it
        self._events = stack.enter_context(self._open_events())
        self._followed = stack.enter_context(Followed(self._command_pid))
        (program,) = self._object.programs.values()
        for event in self._events:
            stack.enter_context(program.attach(event, enable=False))
        if self._walking is not None:
            self._walking.catch_up = self._catch_up
        self._started = time.monotonic()
        self._idle_before_s = proc.idle_seconds()
        if self._by_tree or not self._command_pid:  # else execve enables
            self._events.enable()
        self._followed.snapshot(options.pids, self._collect)

    def _earlier(self, pid: int, time_ns: int) -> Earlier | None:
        """What a process had mapped at a time."""
        return self._followed.spaces.earlier(pid, time_ns)

    def _follow(self, stack: ExitStack, namespace: tuple[int, int]) -> None:
        """Sample the children of the command, or of the processes, where they are asked for."""
        if self._by_tree:
            from purebpf.kernel.instruments.process_tree import ProcessTree

            tree = ProcessTree(
                self._object.maps["tgids"], command_pid=self._command_pid, namespace=namespace
            )
            self._tree = stack.enter_context(tree)
            tgids = self._object.maps["tgids"]
            follow_descendants(
                self._options.pids, lambda missing: tgids.update(dict.fromkeys(missing, 1))
            )
        self._targets = stack.enter_context(TargetEnds(self._options.pids))

    def _choose_program(self) -> str:
        """The one that reads the kernel's types, where something needs them."""
        by_mount = self._options.mount_namespace_map is not None
        typed = by_mount or targets.PidNamespace.own().needs_types()
        return "on_sample_typed" if typed else "on_sample"

    def _spec(self) -> ObjectSpec:
        options = self._options
        return (
            objects.spec("profile")
            .set(
                user_stacks=options.user_stacks,
                python=options.python,
                python_lines=options.python_lines,
                gil_only=options.gil,
                kernel_stacks=options.kernel_stacks,
                include_idle=options.include_idle,
                by_thread=options.by_thread or bool(options.tids),
                slot_ns=slot_length_ns(options),
                has_cgroup_ids=options.cgroup_map is not None,
                has_mount_namespaces=options.mount_namespace_map is not None,
                max_depth=self._max_depth,
            )
            .resize(counts=options.hash_storage_size, stacks=options.stack_storage_size)
        )

    def _open_events(self) -> PerfEvents:
        options = self._options
        rate = (None, options.period) if options.period else (options.frequency, None)
        if self._by_tree or not self._command_pid:
            return PerfEvents.sampling(*rate, cpus=options.cpus or None, disabled=1)
        pid = self._command_pid
        return PerfEvents(
            [PerfEvent.sampling(*rate, pid=pid, inherit=1, enable_on_exec=1, disabled=1)]
        )

    @cached_property
    def _python(self) -> PythonTables | None:
        """What reads Python frames; None where stacks are walked by frame pointers."""
        if self._walking is None or not self._options.python:
            return None
        return read_python(
            *(self._object, self._walking, self._owned_python),
            lines=self._options.python_lines,
            native=self._options.native,
        )

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until it is over: the duration has passed, or one of `ends` is readable.

        Returns:
            Whether it is over; False after `at_most_s` seconds when it is not.
        """
        duration_s = self._options.duration_s
        if self._python is not None and not self._options.pids:
            self._python.interpreters.publish_running()
        over = None if duration_s is None else self._started + duration_s
        pause = None if at_most_s is None else time.monotonic() + at_most_s
        every_s = self._take_every_s if pause is None else None  # who says when to pause also takes
        while True:
            if every_s is not None:
                pause = time.monotonic() + every_s
            is_over = wait.until(
                over,
                (*ends, self._targets) if self._targets else ends,
                pause=pause,
                sources=self._sources(),
                drain=self._drain,
                # a process that has just started becomes an interpreter without saying so
                every_s=None if self._python is None else self._python.interpreters.look_again_s,
            )
            if not is_over and every_s is None:
                return False
            if not is_over:
                self.take()
            elif not (self._targets.drop_ended() and self._targets):
                return True

    def _sources(self) -> tuple[int, ...]:
        """Readable when `_drain` is due."""
        walking, python = self._walking, self._python
        followed = self._followed.fds
        return (*followed, *(walking.fds if walking else ()), *(python.fds if python else ()))

    @cached_property
    def _take_every_s(self) -> float | None:
        """When counts by time may have filled half of their table; None: they are only sums."""
        if self._timeline is None:
            return None
        options = self._options
        hertz = options.frequency if options.period is None else _FASTEST_HZ // options.period
        rate = len(self._events) * max(1, hertz)
        return max(_SHORTEST_S, options.hash_storage_size / 2 / rate)

    @cached_property
    def _timeline(self) -> Timeline | None:
        slot_ns = slot_length_ns(self._options)
        return Timeline(slot_ns) if slot_ns else None

    def _drain(self) -> None:
        """Take in what happened to processes, and the stacks that BPF could not finish."""
        if self._walking is None:
            self._followed.drain()
            return
        self._catch_up()
        self._walking.drain()
        if self._python is not None:
            self._python.drain()

    def _catch_up(self) -> None:
        """Take in what happened to processes by now."""
        self._followed.drain(self._feed)

    def _collect(self) -> None:
        if self._walking is not None:
            self._walking.collect()

    def _feed(self, record: object) -> None:
        assert self._walking is not None
        self._walking.feed(record)
        if self._python is not None:
            self._python.interpreters.feed(record)

    @cached_property
    def _finished(self) -> FinishedCounts | None:
        if self._walking is None:
            return None
        from purebpf.profile.finished_counts import FinishedCounts

        return FinishedCounts(self._walking, self._object.maps["counts"])

    def take(self) -> None:
        """Take the counts so far out of the kernel, for `last()` and `so_far()`.

        Each time costs what was counted since the last one. A sample that hits a counter in the
        moment in which it is taken out is not in the result, but in `about["counted"]`.

        Raises:
            KernelError: a map could not be read.
        """
        self._drain()
        self._measure_time()
        if self._taken is None:
            self._taken = self._make_snapshot()
        self._taken.take()
        self._write_java_maps()
        if self._walking is None or not self._walking.is_behind:
            self._followed.forget_exited(self._taken.processes)

    def _make_snapshot(self) -> CountsSnapshot:
        from purebpf.profile.counts_snapshot import CountsSnapshot

        maps, limit = self._object.maps, self._options.hash_storage_size
        return CountsSnapshot(maps["counts"], maps["stacks"], limit, self._finished, self._timeline)

    def last(self) -> Profile:
        """What the last `take` took."""
        assert self._taken is not None
        return self._profile(self._taken.last)

    def so_far(self) -> Profile:
        """What all of them took."""
        assert self._taken is not None
        return self._profile(self._taken.all.items(), self._timeline)

    def stop(self) -> Profile:
        """End the sampling, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            self._events.disable()
            self._measure_time()
            times = self._elapsed_s, self._idle_s
            self._drain()
            if self._walking is not None:
                self._walking.finish()
            self.take()
            self._followed.close()  # naming takes its time: what happens then is not of the run
            self._write_java_maps(again=True)
            self._elapsed_s, self._idle_s = times
            return self.so_far()

    def cgroup_text(self, pid: int) -> str:
        """What /proc/PID/cgroup of a process of the last profile said; "" if it is unknown."""
        return self._followed.cgroups.text(pid)

    @cached_property
    def _java(self) -> JavaMaps:
        from purebpf.profile.java_maps import JavaMaps

        return JavaMaps()

    def _write_java_maps(self, *, again: bool = False) -> None:
        if self._options.java_perf_map and self._taken is not None:
            self._java.write(self._taken.processes, again=again)

    def _measure_time(self) -> None:
        """How long it has sampled, and how long the CPUs of the events have been idle."""
        self._elapsed_s = time.monotonic() - self._started
        before_s, now_s = self._idle_before_s, proc.idle_seconds()
        cpus = {event.cpu for event in self._events} & before_s.keys() & now_s.keys()
        self._idle_s = sum(max(0.0, now_s[cpu] - before_s[cpu]) for cpu in cpus)

    def close(self) -> None:
        """End it without a result, and give back what it holds; again is harmless."""
        self._owned.close()

    @property
    def _clock(self) -> Clock:
        from purebpf.profile.loss import Clock

        options = self._options
        return Clock(self.event.name == "cpu-clock", options.frequency, options.period)

    def _read_counters(self) -> dict[str, int]:
        """The counters of the program and of what finished its stacks, and samples `expected`."""
        from purebpf.profile.loss import expected_samples

        maps = self._object.maps
        stats = stack_maps.sum_up(maps["stats"]) | stack_maps.sum_up(maps["stack_stats"])
        if self._walking is not None:
            stats |= stack_maps.sum_up(maps["unwind_stats"])
        if self._taken is not None:
            stats["counts_full"] += self._taken.dropped
        if self._walking is not None:
            stats["counts_full"] += self._walking.dropped
            stats["counted"] += self._walking.copies - self._walking.dropped
        stats["sideband_lost"] = self._followed.lost
        stats["expected"] = expected_samples(self._clock, self._events.read())
        return stats

    def _profile(
        self, counts: Iterable[tuple[Any, int]], timeline: Timeline | None = None
    ) -> Profile:
        from purebpf.profile.loss import count_asleep, losses
        from purebpf.profile.stacks import fill
        from purebpf.results import Profile
        from purebpf.results.build.stored_stacks import count_truncated
        from purebpf.results.shape.hints import hints
        from purebpf.results.shape.naming_loss import with_naming

        options, maps = self._options, self._object.maps
        clock, stats = self._clock, self._read_counters()
        expected = stats["expected"]
        asleep = 0
        if not options.include_idle:
            missed = max(0, expected - stats["seen"])
            asleep = count_asleep(clock, missed, self._idle_s, stats["idle"])
            expected -= asleep
        profile = Profile(title(options), about=self._about(stats))
        profile.about["asleep"] = asleep
        profile.cost = {"run_time_ns": stats["run_time_ns"], "run_cnt": stats["seen"]}
        traces = dict(self._traces())
        if self._finished is not None:
            counts = self._finished.merge(counts, traces)
            traces |= self._finished.traces
        first = None
        if timeline is not None:
            profile.slot_ns = timeline.slot_ns
            first = int(self._started * 1e9) // timeline.slot_ns
        fill(profile, counts, self._stacks(traces), self._followed.cgroups.of, first)
        if self._python is not None:
            profile.about |= stack_maps.sum_up(maps["python_stats"]) | self._python.counts()
        profile.name_processes(self._followed.names.of)
        stats["user_truncated"] = count_truncated(profile.rows(), self._max_depth)
        profile.loss = losses(
            stats,
            options,
            expected=expected,
            tolerance=self._tolerance(clock, expected),
            max_depth=self._max_depth,
            side_band_lost=stats["sideband_lost"],
            children_missed=None if self._tree is None else self._tree.missed,
        )
        profile.loss = with_naming(profile.loss, self.budget)
        profile.hints = hints(profile, self._symbolizer.runtime)
        if self._python is not None:
            # with --gil, what has no GIL has no samples
            pids = {row.labels.pid for row in profile.rows()} if not options.gil else None
            profile.hints += self._python.interpreters.hints(pids)
            profile.loss = self._python.with_merging(profile.loss)
        if options.java_perf_map:
            profile.hints += self._java.hints()
        if self._command_pid and not self._by_tree:
            profile.hints.append(_CHILDREN_INHERIT)
        return profile

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        from purebpf.kernel.symbolize.symbolizer import Symbolizer

        symbolizer = Symbolizer(self._followed.spaces, fetch=self._fetch, budget=self.budget)
        symbolizer.python = self._python
        return symbolizer

    def _traces(self) -> Mapping[int, Trace]:
        """The program's stacks by number."""
        assert self._taken is not None
        return self._taken.traces

    def _stacks(self, traces: Mapping[int, Trace]) -> Stacks:
        """Stacks by number, named when they are asked for: later, some may have names at last."""
        from purebpf.results.build.stored_stacks import Stacks

        addresses = {number: trace.addresses for number, trace in traces.items()}
        ends = {number: (trace.reason, trace.guessed) for number, trace in traces.items()}
        return Stacks(addresses, self._symbolizer, ends)

    def _tolerance(self, clock: Clock, expected: int) -> int:
        """How many samples an honest run may lack: one in a hundred, and those not yet due.

        The last period of each event is not over when it ends, and an inherited event begins one
        for each task. Cycles do not count while a CPU sleeps, so the time says little about them.
        """
        if not clock.is_time and clock.period is None:
            return expected
        inherits = self._command_pid and not self._by_tree
        return (self._followed.tasks if inherits else len(self._events)) + expected // 100

    def _about(self, stats: Mapping[str, int]) -> dict[str, object]:
        from purebpf.measure.provenance import origin

        options, event = self._options, self.event
        about: dict[str, object] = {"event": event.name}
        if event.fell_back:
            about["event_asked"], about["event_why_not"] = event.asked, event.why_not
        if options.period is None:
            about["frequency_hz"] = options.frequency
        else:
            about["period"] = options.period
        if self._command_pid:
            about["command"] = list(options.command)
        if self._targets.ended:
            about["ended"] = list(self._targets.ended)
        if self._by_tree or not self._command_pid:
            about["cpus"] = [opened.cpu for opened in self._events]
        about |= describe_walking(self._call_graph, self._walking, stats)
        about |= origin(self._elapsed_s)
        for name in ("counted", "idle", "filtered", "outside_namespace", "stacks_displaced"):
            about[name] = stats[name]
        if options.gil:
            about["without_gil"] = stats["without_gil"]
        return about
