"""The live part: what to trace, and profiles of what was counted."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Self

from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.kernel.instruments import allocators
from purebpf.kernel.instruments.call_graph import describe_walking
from purebpf.kernel.instruments.memory_tracer import MemoryRequest, MemoryTracer
from purebpf.kernel.instruments.stack_maps import max_depth
from purebpf.kernel.processes.process_tracker import Followed
from purebpf.measure import targets, wait
from purebpf.measure.privileges import needing
from purebpf.measure.provenance import origin
from purebpf.measure.stop import HasFileno
from purebpf.measure.target_ends import TargetEnds, follow_descendants
from purebpf.mem.loss import losses, untraced_files
from purebpf.mem.profiles import MemoryUse, fill, since, totals
from purebpf.mem.request import SHOWN, Options, profile_title
from purebpf.results import Profile
from purebpf.results.build.stored_stacks import Stacks, count_truncated
from purebpf.results.shape.hints import hints
from purebpf.results.shape.naming_loss import with_naming
from purebpf.symbols.budget import Budget
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.kernel.instruments.allocators import Allocator
    from purebpf.kernel.instruments.memory_tracer import Site
    from purebpf.kernel.symbolize.debug_files import Fetch
    from purebpf.kernel.symbolize.symbolizer import Symbolizer
    from purebpf.kernel.unwind.user_stacks import Trace
    from purebpf.symbols.address_spaces import Earlier

__all__ = ["Memory"]

_MACHINE = "x86_64"
_UNITS = {"faults": "faults"}
_MOST_FILES = 256
"""With allocators: each is two links, and every container may bring its own."""


class Memory(Closing):
    """Traces from when its context is entered until `stop()`.

    Args:
        options: the target, and what of its memory; `show` does not matter here.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`). It
            is traced from its execve on, with everything it forks.
        fetch: gets debug files that are not on this machine
        (`purebpf.kernel.symbolize.debuginfod`).

    Attributes:
        budget: pays for the names; `budget.stop()` makes what is not named yet stay unnamed.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused something; says what, and what would help.
        NotSupportedError: the kernel does not have what is needed; this is not x86-64; no file of
            the target has an allocator with symbols.
    """

    def __init__(self, options: Options, command_pid: int = 0, fetch: Fetch | None = None) -> None:
        self._options = options
        self._command_pid = command_pid
        self._fetch = fetch
        self._allocators: tuple[Allocator, ...] = ()
        self._untraced = 0
        self._seen: list[Site] = []
        self._owned = ExitStack()
        self.budget = Budget()

    def __enter__(self) -> Self:
        if (machine := os.uname().machine) != _MACHINE:
            raise NotSupportedError("purebpf mem", f"it is for x86-64, and this CPU is {machine}")
        with needing("CAP_BPF", "CAP_PERFMON"), ExitStack() as stack:
            self._attach(stack)
            self._owned = stack.pop_all()
        return self

    def _attach(self, stack: ExitStack) -> None:
        options = self._options
        with targets.make_task_filter(options, command_pid=self._command_pid) as whose:
            self._allocators = tuple(self._find_allocators())
            tracer = MemoryTracer(
                self._request(), whose._replace(own_pid=os.getpid()), self._earlier
            )
        self._tracer = stack.enter_context(tracer)
        if options.tree and options.pids:
            follow_descendants(options.pids, tracer.follow)
        self._ends = stack.enter_context(TargetEnds(options.pids))
        if options.pids and tracer.python is not None:
            tracer.python.publish_running(options.pids)
        self._followed = stack.enter_context(Followed(self._command_pid))
        if tracer.walking is not None:
            tracer.walking.catch_up = self._catch_up
        tracer.start()
        self._drain()
        self._followed.snapshot(options.pids, self._collect)
        self._drain()

    def _request(self) -> MemoryRequest:
        options = self._options
        return MemoryRequest(
            self._allocators,
            settings={"python": options.python, "python_lines": options.python_lines},
            sizes={
                "sites": options.hash_storage_size,
                "stacks": options.stack_storage_size,
                "allocations": options.allocation_storage_size if self._allocators else 1,
            },
            call_graph=options.call_graph,
            native=options.native,
            tree=bool(self._command_pid or (options.tree and options.pids)),
        )

    def _find_allocators(self) -> Iterable[Allocator]:
        """Those to trace, each file once in a process.

        Raises:
            NotSupportedError: the target has none with symbols.
        """
        options = self._options
        if not options.traces_malloc:
            return ()
        everywhere = options.tree or options.cgroup is not None
        wanted = [allocators.allocator_in(file) for file in options.libraries]
        for pid in self._pids():
            wanted += allocators.allocators_of(pid, everywhere=everywhere, budget=self.budget)
        if self._command_pid:
            wanted += allocators.own_libc()
            path = shutil.which(options.command[0])
            wanted += allocators.executable_allocator(path) if path else []
        if not wanted:
            raise NotSupportedError(
                "tracing allocations",
                "no file of the target has symbols of malloc and free: name one with --library "
                "FILE, or go without (--no-malloc)",
            )
        by_file = {(allocator.identity, allocator.pid): allocator for allocator in wanted}
        self._untraced = max(0, len(by_file) - _MOST_FILES)
        return islice(by_file.values(), _MOST_FILES)

    def _pids(self) -> Iterable[int]:
        """Processes of the target that exist now."""
        options = self._options
        if options.cgroup is not None and not options.pids:
            return [pid for pid in proc.pids() if targets.is_below(pid, options.cgroup)]
        threads = [proc.status(tid) or {"Tgid": "0"} for tid in options.tids]
        return dict.fromkeys([*options.pids, *(int(status["Tgid"]) for status in threads)])

    def _earlier(self, pid: int, time_ns: int) -> Earlier | None:
        """What a process had mapped at a time."""
        return self._followed.spaces.earlier(pid, time_ns)

    def take(self) -> None:
        """Nothing: what there is stays where it is until it is asked for."""

    def so_far(self) -> Profile:
        """What `options.show` says of the time until now.

        Raises:
            KernelError: a map could not be read.
        """
        return self._look(self._sites())

    def last(self) -> Profile:
        """The same since this was last called; of what was freed and allocated, what was added.

        Raises:
            KernelError: a map could not be read.
        """
        before, self._seen = self._seen, self._sites()
        return self._look(since(self._seen, before))

    def _sites(self) -> list[Site]:
        self._tracer.look()
        self._drain()
        return self._tracer.sites()

    def _look(self, sites: list[Site]) -> Profile:
        tracer = self._tracer
        sites = tracer.resolve(sites)
        stacks = self._stacks(tracer.traces())
        return self._profile(self._options.shown, sites, stacks, tracer.stats())

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """Sleep until it is over: the duration has passed, or one of `ends` is readable.

        Returns:
            Whether it is over; False after `at_most_s` seconds when it is not.
        """
        duration_s, tracer = self._options.duration_s, self._tracer
        walking, python = tracer.walking, tracer.python
        over = None if duration_s is None else tracer.started_ns / 1e9 + duration_s
        pause = None if at_most_s is None else time.monotonic() + at_most_s
        rings = (*(walking.fds if walking else ()), *(python.fds if python else ()))
        if python is not None and not self._options.pids:
            python.publish_running()
        while True:
            is_over = wait.until(
                over,
                (*ends, self._ends) if self._ends else ends,
                pause=pause,
                sources={*self._followed.fds, *rings},
                drain=self._drain,
                # a process that has just started becomes an interpreter without saying so
                every_s=python.look_again_s if python else None,
            )
            if not is_over:
                return False
            if not (self._ends.drop_ended() and self._ends):
                return True

    def _drain(self) -> None:
        self._catch_up()
        self._tracer.drain()

    def _catch_up(self) -> None:
        """Take in what happened to processes by now."""
        self._followed.drain(None if self._tracer.walking is None else self._feed)

    def _collect(self) -> None:
        if self._tracer.walking is not None:
            self._tracer.walking.collect()

    def _feed(self, record: object) -> None:
        for reader in (self._tracer.walking, self._tracer.python):
            if reader is not None:
                reader.feed(record)

    def stop(self) -> MemoryUse:
        """End the tracing, name everything, and close.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            tracer = self._tracer
            tracer.stop()
            self._catch_up()
            sites = tracer.resolve(tracer.sites())
            stacks, stats = self._stacks(tracer.traces()), tracer.stats()
            profiles = [self._profile(shown, sites, stacks, stats) for shown in SHOWN]
            return MemoryUse(*profiles)

    def _stacks(self, traces: Mapping[int, Trace]) -> Stacks:
        """Stacks by number, named when they are asked for."""
        addresses = {number: trace.addresses for number, trace in traces.items()}
        ends = {number: (trace.reason, trace.guessed) for number, trace in traces.items()}
        return Stacks(addresses, self._symbolizer, ends)

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        from purebpf.kernel.symbolize.symbolizer import Symbolizer

        symbolizer = Symbolizer(self._followed.spaces, fetch=self._fetch, budget=self.budget)
        symbolizer.python = self._tracer.python
        return symbolizer

    def _profile(
        self, shown: str, sites: list[Site], stacks: Stacks, stats: dict[str, int]
    ) -> Profile:
        tracer, depth = self._tracer, max_depth()
        about = self._about(stats) | totals(sites)
        heading = profile_title(self._options, shown)
        profile = Profile(heading, unit=_UNITS.get(shown, "bytes"), about=about)
        fill(profile, shown, sites, stacks, self._followed.cgroups.of)
        profile.name_processes(self._followed.names.of)
        truncated = count_truncated(profile.rows(), depth)
        profile.loss = with_naming(
            losses(
                {**stats, "user_truncated": truncated},
                self._options,
                side_band_lost=self._followed.lost,
                max_depth=depth,
            ),
            self.budget,
        )
        profile.hints = hints(profile, self._symbolizer.runtime)
        profile.hints += untraced_files(tracer.refused, self._untraced)
        if tracer.python is not None:
            profile.hints += tracer.python.hints({row.labels.pid for row in profile.rows()})
            profile.loss = tracer.python.with_merging(profile.loss)
            profile.about |= tracer.python.counts()
        return profile

    def _about(self, stats: dict[str, int]) -> dict[str, object]:
        tracer = self._tracer
        about = describe_walking(tracer.call_graph, tracer.walking, stats)
        about |= origin((tracer.ended_ns - tracer.started_ns) / 1e9)
        about["allocators"] = sorted(set(tracer.traced))
        if self._command_pid:
            about["command"] = list(self._options.command)
        if self._ends.ended:
            about["ended"] = list(self._ends.ended)
        return about

    def close(self) -> None:
        """End it without a result, and give back what it holds; again is harmless."""
        self._owned.close()
