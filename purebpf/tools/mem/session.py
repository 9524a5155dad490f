"""The live part: chooses the programs to trace, and makes profiles of the counts."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Self

from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.files.regular_file import Identity
from purebpf.loader.host.process_files import probed_inode
from purebpf.measure import targets
from purebpf.measure.stacks.assemble_profile import Steps, assemble_profile, python_counters
from purebpf.measure.stacks.session import UserStackSession
from purebpf.measure.target_ends import first_pids
from purebpf.observe.instruments import allocators
from purebpf.observe.instruments.memory_tracer import MemoryTracer
from purebpf.observe.instruments.process_tree import processes_called
from purebpf.observe.instruments.stack_maps import max_depth
from purebpf.results import Profile
from purebpf.syscall import host_clock, proc
from purebpf.tools.mem.cost import CostLimit
from purebpf.tools.mem.growth import GrowthWatch
from purebpf.tools.mem.loss import (
    NO_MALLOC,
    leaving_functions,
    losses,
    untraced_files,
    untraced_functions,
)
from purebpf.tools.mem.profiles import MemoryUse, fill, since, totals
from purebpf.tools.mem.request import OF_MALLOC, SHOWN, MemOptions, profile_title

if TYPE_CHECKING:
    from purebpf.files.regular_file import Identity
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.measure.stop import HasFileno
    from purebpf.observe.instruments.allocators import Allocator
    from purebpf.observe.instruments.memory_tracer import Site
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.unwind.user_stacks import Trace
    from purebpf.results.build.stored_stacks import Stacks

__all__ = ["Memory"]

_MACHINE = "x86_64"
_UNITS = {"faults": "faults"}
_CHECK_S = 0.2
"""Between two looks at the cost of tracing allocators."""
_MOST_FILES = 256
"""With allocators: each is two links, and every container may bring its own."""


class Memory(UserStackSession[MemoryTracer]):
    """Traces from when its context is entered until `stop()`.

    Args:
        options: the target, and the uses of its memory. `show` decides only if a target without
            malloc is an error.
        command_pid: as of `UserStackSession`.
        fetch: as of `UserStackSession`.

    Raises, when it is entered: as `UserStackSession`, and
        NotSupportedError: this is not x86-64; `options.show` needs an allocator, and no file of the
            target has one with symbols.
    """

    def __init__(
        self, options: MemOptions, command_pid: int = 0, fetch: Fetch | None = None
    ) -> None:
        super().__init__(options, command_pid, fetch)
        self._options = options
        self._allocators: tuple[Allocator, ...] = ()
        self._has_malloc = True
        self._untraced = 0
        self._traced_files: set[Identity] = set()
        self._late: list[str] = []
        self._growth: GrowthWatch | None = None
        self._cost = CostLimit(options.cost_percent or 0.0, options.duration_s)
        self._seen: list[Site] = []

    def __enter__(self) -> Self:
        if (machine := os.uname().machine) != _MACHINE:
            raise NotSupportedError("purebpf mem", f"it is for x86-64, and this CPU is {machine}")
        session = super().__enter__()
        if self._options.has_target and not self._command_pid:
            pids = first_pids(tuple(self._pids()), tree=self._options.tree)
            self._growth = GrowthWatch(pid for pid in pids if pid != os.getpid())
        return session

    def make_tracer(self, whose: TaskFilter) -> MemoryTracer:
        """The programs of bpf_src/mem.bpf.c."""
        options = self._options
        self._allocators = tuple(self._find_allocators())
        return MemoryTracer(
            self._allocators,
            {"python": options.python, "python_lines": options.python_lines},
            {
                "sites": options.hash_storage_size,
                "stacks": options.stack_storage_size,
                "allocations": options.allocation_storage_size if self._allocators else 1,
            },
            whose._replace(own_pid=os.getpid()),
            self.earlier,
            call_graph=options.call_graph,
            native=options.native,
            tree=self.by_tree,
        )

    def _find_allocators(self) -> Iterable[Allocator]:
        """Return the allocators to trace, each file once in a process.

        Raises:
            NotSupportedError: the target has none with symbols.
        """
        options = self._options
        if not options.traces_malloc:
            return ()
        everywhere = options.tree or options.comm is not None or self._is_by_scope
        wanted = list(self._named_allocators())
        code_by_identity: dict[Identity, allocators.AllocatorCode] = {}
        for pid in self._pids():
            try:
                wanted += allocators.allocators_of(
                    pid, everywhere=everywhere, budget=self.budget, by_identity=code_by_identity
                )
            except KernelError:  # one of many, whose mappings may not be read
                if not self._is_by_scope:
                    raise
        if self._command_pid or options.comm is not None:
            wanted += allocators.own_libc()
        if self._command_pid:
            path = shutil.which(options.command[0])
            wanted += allocators.executable_allocator(path) if path else []
        if not wanted and options.show in OF_MALLOC:
            raise NotSupportedError(
                f"--show {options.show}",
                "no file of the target has symbols of malloc and free: name one with --library "
                "FILE",
            )
        self._has_malloc = bool(wanted)
        by_file = {
            (probed_inode(allocator.path, allocator.identity), allocator.pid): allocator
            for allocator in wanted
        }
        self._untraced = max(0, len(by_file) - _MOST_FILES)
        self._traced_files = {identity for identity, _ in by_file}
        return islice(by_file.values(), _MOST_FILES)

    def _named_allocators(self) -> Iterator[Allocator]:
        """Yield the allocators in files that the user named, as the target's processes have them.

        Raises:
            AttachError, FormatError, NotSupportedError, OSError: none has it, or it has none.
        """
        pids = list(self._pids()) or [allocators.EVERY_PROCESS]
        for file in self._options.libraries:
            problem: AttachError | None = None
            paths: dict[str, None] = {}
            for pid in pids:
                try:
                    paths[allocators.library_path(file, pid)] = None
                except AttachError as error:
                    problem = error
            if not paths and problem is not None:
                raise problem
            yield from map(allocators.allocator_in, paths)

    def _late_allocators(self, pids: Iterable[int]) -> list[str]:
        """Return the allocators of processes that executed or loaded them during the run."""
        if not self._allocators:
            return []
        spaces = self._watch.followed.spaces
        files = ((pid, mapping.file) for pid in pids for mapping in spaces.files(pid))
        return allocators.late_allocators(files, self._traced_files)

    def _untraced_functions(self) -> dict[str, str]:
        """Functions of allocators that are not probed, and why."""
        return {
            f"{name} of {allocator.path}": why
            for allocator in self._allocators
            if allocator.path not in self._tracer.refused
            for name, why in allocator.code.untraced
        }

    def _leaving_functions(self) -> list[str]:
        """Functions of allocators, with their files, that may go on in another file."""
        return [
            f"{name} of {allocator.path}"
            for allocator in self._allocators
            if allocator.path not in self._tracer.refused
            for name in allocator.code.leaving
        ]

    @property
    def _is_by_scope(self) -> bool:
        """True if the target is a cgroup or a user."""
        return self._options.cgroup is not None or self._options.uid is not None

    def _pids(self) -> Iterable[int]:
        """Processes of the target that exist now."""
        options = self._options
        if self._is_by_scope and not options.pids:
            return [pid for pid in proc.pids() if targets.is_in_scope(pid, options)]
        threads = [proc.status(tid) or {"Tgid": "0"} for tid in options.tids]
        named = () if options.comm is None else processes_called(options.comm)
        return dict.fromkeys([*options.pids, *named, *(int(status["Tgid"]) for status in threads)])

    def wait(self, *ends: HasFileno, at_most_s: float | None = None) -> bool:
        """As `UserStackSession.wait`; allocators that cost too much are no longer traced then."""
        pause = None if at_most_s is None else time.monotonic() + at_most_s
        while self._cost.percent and self._tracer.traced:
            left_s = _CHECK_S if pause is None else min(_CHECK_S, pause - time.monotonic())
            if super().wait(*ends, at_most_s=max(0.0, left_s)):
                return True
            self._limit_cost()
            if pause is not None and time.monotonic() >= pause:
                return False
        remaining_s = None if pause is None else max(0.0, pause - time.monotonic())
        return super().wait(*ends, at_most_s=remaining_s)

    def _limit_cost(self) -> None:
        tracer = self._tracer
        elapsed_s = (host_clock.monotonic_ns() - tracer.started_ns) / 1e9
        if self._cost.is_over(tracer.stats()["allocations"], elapsed_s):
            tracer.drop_allocators()

    def so_far(self) -> Profile:
        """Return the profile that `options.show` names, of the time until now.

        Raises:
            KernelError: a map could not be read.
        """
        return self._look(self._sites())

    def last(self) -> Profile:
        """Return the same profile since the last call of this; frees and allocations are
        differences.

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
        sites = self._resolve(sites)
        return self._profile(self._options.shown, sites, tracer.traces(), tracer.stats())

    def stop(self, pids: Collection[int] | None = None) -> MemoryUse:
        """End the tracing, name everything, and close.

        Args:
            pids: leave out other processes, whose names would take long; None: keep all.

        Raises:
            KernelError: a map could not be read.
        """
        with self._owned:
            tracer = self._tracer
            tracer.stop()
            grown = self._growth.read() if self._growth else []
            if tracer.walking is not None:
                tracer.walking.wanted = pids
            self._watch.catch_up()
            wanted = [site for site in tracer.sites() if pids is None or site.pid in pids]
            self._late = self._late_allocators({site.pid for site in wanted})
            sites = self._resolve(wanted)
            traces, stats = tracer.traces(), tracer.stats()
            self._cost.end(stats["allocations"], (tracer.ended_ns - tracer.started_ns) / 1e9)
            profiles = [self._profile(profile_name, sites, traces, stats) for profile_name in SHOWN]
            for profile in profiles:
                profile.about["growth"] = [one._asdict() for one in grown]
            return MemoryUse(*profiles)

    def _resolve(self, sites: list[Site]) -> list[Site]:
        numbers = self._tracer.resolve({site.stack for site in sites})
        return [site._replace(stack=numbers[site.stack]) for site in sites]

    def _profile(
        self,
        profile_name: str,
        sites: list[Site],
        traces: Mapping[int, Trace],
        stats: dict[str, int],
    ) -> Profile:
        tracer, followed, depth = self._tracer, self._watch.followed, max_depth()
        about = self.about(stats) | totals(sites)
        about["allocators"] = sorted({*tracer.traced, *tracer.dropped})
        about |= self._cost.facts() if self._has_malloc else {"malloc_missing": True}
        heading = profile_title(self._options, profile_name)
        counts = dict(stats) | {"late_allocators": len(self._late)}

        def fill_sites(profile: Profile, stacks: Stacks) -> None:
            counts["sizes_cut"] = fill(profile, profile_name, sites, stacks, followed.cgroups.of)

        steps = Steps(
            fill=fill_sites,
            losses=lambda truncated: losses(
                counts | {"user_truncated": truncated},
                self._options,
                side_band_lost=followed.lost,
                max_depth=depth,
            ),
            max_depth=depth,
            python_stats=lambda: python_counters(stats),
            advise=lambda _: [
                *([] if self._has_malloc else [NO_MALLOC]),
                *untraced_files(tracer.refused, self._untraced, self._late),
                *untraced_functions(self._untraced_functions()),
                *leaving_functions(self._leaving_functions()),
            ],
        )
        return assemble_profile(
            Profile(heading, unit=_UNITS.get(profile_name, "bytes"), about=about),
            *(steps, traces),
            watch=self._watch,
            python=tracer.python,
            symbolizer=self.symbolizer,
        )
