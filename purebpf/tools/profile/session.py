"""`Profiler`: waits while it samples, takes the counts, and makes profiles of them.

Modules that only a running session needs are imported after the attach: see
docs/design/0002-start.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from purebpf.closable import Closing
from purebpf.measure.stop import HasFileno
from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.call_graph import describe_walking
from purebpf.tools.profile.request import ProfileOptions, title
from purebpf.tools.profile.sampling import Sampling

if TYPE_CHECKING:
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.loader.perf.perf_event import Event
    from purebpf.observe.symbols.symbolizer import Symbolizer
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.results import Profile
    from purebpf.results.build.stored_stacks import Stacks
    from purebpf.symbols.budget import Budget
    from purebpf.tools.profile.counts_snapshot import CountsSnapshot
    from purebpf.tools.profile.finished_counts import FinishedCounts
    from purebpf.tools.profile.loss import Clock
    from purebpf.tools.profile.timeline import Timeline

__all__ = ["Profiler"]

_FASTEST_HZ = 5_000_000_000
"""Of events with a period of one: no CPU counts more cycles."""
_SHORTEST_S = 0.1
_SHORT_S = 0.05
"""A command that ends sooner needs no finisher of stacks, unless a stack was copied."""
_FEW_COPIES = 20
"""The rings have room for three times as many, until the finisher is there."""
_CHILDREN_INHERIT = (
    "this kernel does not show its types (CONFIG_DEBUG_INFO_BTF): child processes that lived for "
    "less than a sampling period are missing. Raise -F"
)


class Profiler(Closing):
    """Samples from when its context is entered until `stop()`.

    Args:
        options: the target and the settings; the layout of the output does not matter here.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`). It
            is sampled from its execve on, with everything it forks, however short that lives.
        fetch: gets debug files that are not on this machine
            (`purebpf.observe.symbols.debuginfod`).

    Attributes:
        budget: pays for the names; after `budget.stop()`, frames without a name so far stay
            unnamed.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused something; the message says why, and names a fix.
        NotSupportedError: the kernel, or a pinned map, lacks a feature that the programs need.
    """

    def __init__(
        self, options: ProfileOptions, command_pid: int = 0, fetch: Fetch | None = None
    ) -> None:
        self._options = options
        self._fetch = fetch
        self._command_pid = command_pid
        self._sampling = Sampling(options, command_pid)
        self._elapsed_s = self._idle_s = 0.0
        self._taken: CountsSnapshot | None = None

    @property
    def _is_read(self) -> bool:
        """True if a person reads the next profile, and its hints."""
        return True

    @property
    def event(self) -> Event:
        """The name of the event, with the reason when it is not CPU cycles."""
        return self._sampling.events.event

    @property
    def elapsed_s(self) -> float:
        """The sampled time up to the last `take`."""
        return self._elapsed_s

    @cached_property
    def budget(self) -> Budget:
        """The budget of naming; created at the first use, as a start need not wait."""
        from purebpf.symbols.budget import Budget

        return Budget()

    def __enter__(self) -> Self:
        self._sampling.attach()
        return self

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until it is over: the duration has passed, or one of `ends` is readable.

        Returns:
            Whether it is over; False after `at_most_s` seconds when it is not.
        """
        duration_s, sampling = self._options.duration_s, self._sampling
        over = None if duration_s is None else sampling.started + duration_s
        if self._command_pid and not sampling.is_prepared:
            wait, short_s = sampling.watch.wait, min(_SHORT_S, _FEW_COPIES / sampling.rate_hz)
            if wait(ends, sampling.drain, over=over, at_most_s=short_s, targets=sampling.targets):
                return True
        sampling.prepare()
        pause_s = self._take_every_s if at_most_s is None else at_most_s
        while not sampling.watch.wait(
            ends, sampling.drain, over=over, at_most_s=pause_s, targets=sampling.targets
        ):
            if at_most_s is not None:  # the caller also takes
                return False
            self.take()
        return True

    @cached_property
    def _take_every_s(self) -> float | None:
        """When counts by time may have filled half of their table; None: they are only sums."""
        if self._timeline is None:
            return None
        options = self._options
        hertz = options.frequency if options.period is None else _FASTEST_HZ // options.period
        rate = len(self._sampling.events) * max(1, hertz)
        return max(_SHORTEST_S, options.hash_storage_size / 2 / rate)

    @cached_property
    def _timeline(self) -> Timeline | None:
        slot_ns = self._sampling.slot_ns
        if not slot_ns:
            return None
        from purebpf.tools.profile.timeline import Timeline

        return Timeline(slot_ns)

    @cached_property
    def _finished(self) -> FinishedCounts | None:
        walking = self._sampling.walking
        if walking is None:
            return None
        from purebpf.tools.profile.finished_counts import FinishedCounts

        return FinishedCounts(walking, self._sampling.loaded.maps["counts"])

    def take(self) -> None:
        """Take the counts so far out of the kernel, for `last()` and `so_far()`.

        Each call costs as much as the samples counted since the last one. A sample that hits a
        counter at the moment of the drain is not in the result, but in `about["counted"]`.

        Raises:
            KernelError: a map could not be read.
        """
        sampling = self._sampling
        sampling.drain()
        self._elapsed_s, self._idle_s = sampling.times_s()
        if self._taken is None:
            self._taken = self._make_snapshot()
        self._taken.take()
        if sampling.python is not None:  # of samples since the drain, too
            sampling.python.drain()
        if sampling.walking is None or not sampling.walking.is_behind:
            sampling.watch.followed.forget_exited(self._taken.processes)

    def _make_snapshot(self) -> CountsSnapshot:
        from purebpf.tools.profile.counts_snapshot import CountsSnapshot

        maps, limit = self._sampling.loaded.maps, self._options.hash_storage_size
        return CountsSnapshot(maps["counts"], maps["stacks"], limit, self._finished, self._timeline)

    def last(self) -> Profile:
        """Return the profile of the last `take`."""
        assert self._taken is not None
        return self._profile(self._taken.last)

    def so_far(self) -> Profile:
        """Return the profile of all `take`s."""
        assert self._taken is not None
        return self._profile(self._taken.all.items(), self._timeline)

    def stop(self) -> Profile:
        """End the sampling, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with self._sampling as sampling:
            sampling.events.disable()
            times_s = sampling.times_s()
            sampling.drain()
            if sampling.walking is not None:
                sampling.walking.finish()
            self.take()
            sampling.watch.close()  # naming takes its time: what happens then is not of the run
            self._elapsed_s, self._idle_s = times_s
            return self.so_far()

    def cgroup_text(self, pid: int) -> str:
        """Return the text of /proc/PID/cgroup of a process of the last profile; "" if it is
        unknown.
        """
        return self._sampling.watch.followed.cgroups.text(pid)

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._sampling.close()

    @property
    def _clock(self) -> Clock:
        from purebpf.tools.profile.loss import Clock

        options = self._options
        return Clock(self.event.name == "cpu-clock", options.frequency, options.period)

    def _read_counters(self) -> dict[str, int]:
        """Return the counters of the program and of the user-space part, and samples `expected`."""
        from purebpf.tools.profile.loss import expected_samples

        sampling, maps = self._sampling, self._sampling.loaded.maps
        stats = stack_maps.sum_up(maps["stats"]) | stack_maps.sum_up(maps["stack_stats"])
        if sampling.walking is not None:
            stats |= stack_maps.sum_up(maps["unwind_stats"])
        if self._taken is not None:
            stats["counts_full"] += self._taken.dropped
        if sampling.walking is not None:
            stats["counts_full"] += sampling.walking.dropped
            stats["counted"] += sampling.walking.copies - sampling.walking.dropped
        stats["own_dropped"] = sampling.own.count_dropped() if sampling.own else 0
        stats["seen"] += stats["own_dropped"]
        stats["sideband_lost"] = sampling.watch.followed.lost
        stats["expected"] = expected_samples(self._clock, sampling.events.read())
        return stats

    def _profile(
        self, counts: Iterable[tuple[Any, int]], timeline: Timeline | None = None
    ) -> Profile:
        from purebpf.measure.stacks.assemble_profile import Steps, assemble_profile
        from purebpf.results import Profile
        from purebpf.tools.profile.loss import count_asleep, losses
        from purebpf.tools.profile.stacks import fill

        options, sampling = self._options, self._sampling
        maps = sampling.loaded.maps
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
            first = int(sampling.started * 1e9) // timeline.slot_ns
        cgroup_of = sampling.watch.followed.cgroups.of

        def fill_rows(profile: Profile, stacks: Stacks) -> None:
            own = fill(profile, counts, stacks, cgroup_of, first, left_out=options.left_out)
            if options.left_out:
                profile.about["own"] = own

        steps = Steps(
            fill=fill_rows,
            losses=lambda truncated: losses(
                stats | {"user_truncated": truncated},
                options,
                expected=expected,
                tolerance=self._tolerance(clock, expected),
                max_depth=sampling.max_depth,
                side_band_lost=stats["sideband_lost"],
                children_missed=None if sampling.tree is None else sampling.tree.missed,
            ),
            max_depth=sampling.max_depth,
            python_stats=lambda: stack_maps.sum_up(maps["python_stats"]),
            advise=self._advise,
            with_hints=self._is_read,
            # with --gil, a process whose GIL cannot be read has no samples
            python_pids=lambda pids: None if options.gil else pids,
        )
        return assemble_profile(
            *(profile, steps, traces),
            watch=sampling.watch,
            python=sampling.python,
            symbolizer=self._symbolizer,
        )

    def _advise(self, pids: set[int]) -> list[str]:
        """Return advice about processes that the profile lacks."""
        options, python = self._options, self._sampling.python
        lines = []
        if options.gil and python is not None:
            lines += python.interpreters.without_gil(pids)
        if self._command_pid and not self._sampling.by_tree:
            lines.append(_CHILDREN_INHERIT)
        return lines

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        return self._sampling.watch.make_symbolizer(self._fetch, self.budget)

    def _traces(self) -> Mapping[int, Trace]:
        """The program's stacks by number."""
        assert self._taken is not None
        return self._taken.traces

    def _tolerance(self, clock: Clock, expected: int) -> int:
        """Return how many samples an honest run may lack: one in a hundred, and the ones not yet
        due.

        The last period of each event is not over when it ends, and an inherited event begins one
        for each task. Cycles do not count while a CPU sleeps, so the time says little about them.
        """
        if not clock.is_time and clock.period is None:
            return expected
        sampling = self._sampling
        inherits = self._command_pid and not sampling.by_tree
        return (
            sampling.watch.followed.tasks if inherits else len(sampling.events)
        ) + expected // 100

    def _about(self, stats: Mapping[str, int]) -> dict[str, object]:
        from purebpf.measure.provenance import origin

        options, sampling, event = self._options, self._sampling, self.event
        about: dict[str, object] = {"event": event.name}
        if event.fell_back:
            about["event_asked"], about["event_why_not"] = event.asked, event.why_not
        if options.period is None:
            about["frequency_hz"] = options.frequency
        else:
            about["period"] = options.period
        if self._command_pid:
            about["command"] = list(options.command)
        if sampling.targets.ended:
            about["ended"] = list(sampling.targets.ended)
        if sampling.by_tree or not self._command_pid:
            about["cpus"] = [opened.cpu for opened in sampling.events]
        about |= describe_walking(sampling.call_graph, sampling.walking, stats)
        about |= origin(self._elapsed_s)
        for name in ("counted", "idle", "filtered", "outside_namespace", "stacks_displaced"):
            about[name] = stats[name]
        if sampling.own is not None:
            about["program"] = sampling.own.describe(stats["own_dropped"])
        if options.gil:
            about["without_gil"] = stats["without_gil"]
        return about
