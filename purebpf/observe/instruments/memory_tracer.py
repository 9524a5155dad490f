"""`MemoryTracer`: the programs of bpf_src/mem.bpf.c, which add up memory by user stack."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from purebpf.errors import PurebpfError
from purebpf.files.regular_file import opened_same
from purebpf.loader.attach import uprobe, uprobe_multi
from purebpf.loader.features.features import have_uprobe_multi
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.stack_tracer import StackRequest, StackTracer
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.programs.link import Link
    from purebpf.loader.programs.program import Program
    from purebpf.observe.instruments.allocators import Allocator, AllocatorCode, Places
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.unwind.programs import EarlierLookup

__all__ = ["KINDS", "MemoryTracer", "Site"]

KINDS = ("minor fault", "major fault", "mmap", "file mmap", "reserved", "brk", "malloc")
"""enum kind of bpf_src/mem/sites.h."""

_FAULTS = {"on_minor_fault": "minor-faults", "on_major_fault": "major-faults"}
_GROWTH = ("on_call", "on_call_end")
_MANY = ("on_returns", "on_clears", "on_jumps", "on_entries")
_SINGLE = ("on_return", "on_clear", "on_jump", "on_entry")
"""The programs at code of allocators: for many places, and for one."""
_BURST = (2000, 1024)
"""Copies that a CPU may make in a second, and pages of its ring, with allocators: allocations come
in bursts, before a walk has its tables."""
_FIRST_BURST = (3000, 4096)
"""The same of a command, which may be over by then: its first milliseconds are all copies."""
_MOST_PAGES = 65536


class Site(NamedTuple):
    """The work of one stack of a process, of one of `KINDS`.

    Attributes:
        stack: its number.
        times: faults, calls or allocations; `size` is their bytes, 0 of faults.
        freed: allocations that were freed.
        unfollowed: allocations that may or may not have been freed.
    """

    comm: str
    pid: int
    kind: str
    stack: int
    times: int
    size: int
    freed: int
    freed_size: int
    unfollowed: int
    unfollowed_size: int

    @property
    def key(self) -> tuple[str, int, str, int]:
        """The key of the sums."""
        return self.comm, self.pid, self.kind, self.stack

    def minus(self, before: Site) -> Site:
        """Return the difference to an earlier state."""
        return Site(
            *self.key,
            self.times - before.times,
            self.size - before.size,
            self.freed - before.freed,
            self.freed_size - before.freed_size,
            self.unfollowed - before.unfollowed,
            self.unfollowed_size - before.unfollowed_size,
        )


class MemoryTracer(StackTracer):
    """Traces from `start()` to `stop()`.

    Args:
        allocators: files with functions to probe.
        settings: constants of the object.
        sizes: max_entries of its maps.
        whose: the target.
        earlier: returns the mappings of a process at a time, see `UserStacks`.
        call_graph: how user stacks are walked, see `load_walking`.
        native: as in `PythonTables`, for `python` among the settings.
        tree: follow the children of the target's processes.

    Attributes:
        traced: paths of the allocators that are probed.
        refused: of those that could not be.
        dropped: of those that `drop_allocators` no longer probes.

    Raises:
        KernelError, NotSupportedError: as `StackTracer`. Needs uprobes for allocators.
    """

    def __init__(
        self,
        allocators: Collection[Allocator],
        settings: Mapping[str, Any],
        sizes: Mapping[str, int],
        whose: TaskFilter,
        earlier: EarlierLookup | None = None,
        *,
        call_graph: str = "auto",
        native: bool = False,
        tree: bool = False,
    ) -> None:
        self._missed = 0
        self.traced: list[str] = []
        self.refused: list[str] = []
        self.dropped: list[str] = []
        self._allocators = allocators
        self._probes = _choose_probes(allocators)
        programs = (*_FAULTS, *_GROWTH, *self._probes)
        request = StackRequest("mem", programs, settings, sizes, call_graph, native, tree)
        if whose.command_pid or allocators:
            copies, pages = _FIRST_BURST if whose.command_pid else _BURST
            while pages > _BURST[1] and pages * (os.cpu_count() or 1) > _MOST_PAGES:
                pages //= 2
            request = request._replace(copies=copies, pages=pages)
        super().__init__(request, whose, earlier)

    def attach(self, links: ExitStack) -> None:
        """Attach to faults, calls and allocators."""
        programs = self._object.programs
        self._faults: list[PerfEvents] = []
        for name, event in _FAULTS.items():
            events = PerfEvents.sampling(None, 1, event=event, disabled=1)
            self._faults.append(links.enter_context(events))
            for opened in events:
                links.enter_context(programs[name].attach(opened, enable=False))
        self._own_faults = [
            links.enter_context(PerfEvent.software(event, pid=0, inherit=1, disabled=1))
            for event in _FAULTS.values()
        ]
        for name in _GROWTH:
            links.enter_context(programs[name].attach())
        self._attach_allocators(links)

    def _attach_allocators(self, links: ExitStack) -> None:
        """Attach every possible probe: a file that a process maps may not stop another user's
        run.
        """
        refusals: list[PurebpfError | OSError] = []
        self._probing = links.enter_context(ExitStack())
        for allocator in self._allocators:
            try:
                with ExitStack() as probes:
                    self._probe(allocator, probes)
                    self._probing.push(probes.pop_all())
            except (PurebpfError, OSError) as error:
                if allocator.is_named:
                    raise
                refusals.append(error)
                self.refused.append(allocator.path)
            else:
                self.traced.append(allocator.path)
        if refusals and not self.traced:
            raise refusals[0]

    def _probe(self, allocator: Allocator, links: ExitStack) -> None:
        programs = self._object.programs
        description = f"the allocator {allocator.path}"
        with opened_same(allocator.path, allocator.identity, description) as path:
            for name, places in zip(self._probes, _places_of(allocator.code), strict=True):
                for link in _attach_probes(programs[name], path, allocator.pid, places):
                    links.enter_context(link)

    def drop_allocators(self) -> None:
        """Take the probes of allocators away: their counts stay, faults and growth go on."""
        self._probing.close()
        self.dropped += self.traced
        self.traced.clear()
        calls = self.maps["calls"]
        for thread in list(calls):
            calls.pop(thread, None)

    def start(self) -> None:
        """Begin."""
        super().start()
        for own in self._own_faults:  # first, and last below: a fault of ours is never missing
            own.enable()
        for events in self._faults:
            events.enable()

    def stop(self) -> None:
        """End; the counts can still be read."""
        for events in self._faults:
            events.disable()
        for own in self._own_faults:
            own.disable()
        super().stop()

    def look(self) -> None:
        """As `StackTracer.look`, with the faults that were due until now."""
        super().look()
        counted = stack_maps.sum_up(self.maps["stats"])["faults"]
        due = sum(reading.value for events in self._faults for reading in events.read())
        due -= sum(event.read().value for event in self._own_faults)
        self._missed = max(0, due - counted)

    def sites(self) -> list[Site]:
        """Return the counts. `resolve` them before their stacks are looked up.

        Raises:
            KernelError: the map could not be read.
        """
        return [
            Site(
                key.comm,
                key.tgid,
                KINDS[key.kind],
                key.user_stack,
                value.count,
                value.bytes,
                value.freed,
                value.freed_bytes,
                value.unfollowed,
                value.unfollowed_bytes,
            )
            for key, value in self.maps["sites"].items()
        ]

    def stats(self) -> dict[str, int]:
        """As `StackTracer.stats`, with `faults_missed`."""
        in_flight = sum(1 for _ in self.maps["calls"]) if self._allocators else 0
        return super().stats() | {"faults_missed": self._missed, "in_flight": in_flight}


def _choose_probes(allocators: Collection[Allocator]) -> tuple[str, ...]:
    """The programs at the places of functions, in the order of `_places_of`.

    A link to many functions is removed at once. With one for each, the kernel waits for every CPU
    after each of them: 14 s for the 17 of a libc.
    """
    if not allocators:
        return ()
    # Where its first thread has ended, a probe for many places does not find a process's memory.
    pids = {allocator.pid for allocator in allocators if allocator.pid > 0}
    have_first = all(proc.with_memory(pid) == pid for pid in pids)
    return _MANY if have_first and have_uprobe_multi() else _SINGLE


def _places_of(code: AllocatorCode) -> tuple[Places, ...]:
    """The places of an allocator: ends first, so that every call that begins is seen to end."""
    return code.returns, code.clears, code.jumps, code.entries


def _attach_probes(program: Program, path: str, pid: int, offsets: Places) -> Iterator[Link]:
    places = {f"{path}:{offset:#x}": cookie for offset, cookie in offsets}
    if program.name in _MANY:
        if places:
            yield uprobe_multi.attach(program, places, pid=pid)
        return
    for where, cookie in places.items():
        yield uprobe.attach(program, where, pid=pid, cookie=cookie)
