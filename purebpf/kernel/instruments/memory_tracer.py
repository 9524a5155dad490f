"""`MemoryTracer`: the programs of bpf_src/mem.bpf.c, which add up memory by user stack."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from purebpf import objects
from purebpf.closable import Closing
from purebpf.errors import PurebpfError
from purebpf.kernel.attach import uprobe, uprobe_multi
from purebpf.kernel.features.features import have_uprobe_multi
from purebpf.kernel.instruments import process_tree, stack_maps
from purebpf.kernel.instruments.allocators import opened_same
from purebpf.kernel.instruments.call_graph import load_walking, read_python
from purebpf.kernel.instruments.quiesce import settle
from purebpf.kernel.load.load import load
from purebpf.kernel.perf.perf_event import PerfEvent
from purebpf.kernel.perf.perf_events import PerfEvents
from purebpf.kernel.unwind.tickets import Tickets

if TYPE_CHECKING:
    from purebpf.kernel.cpython.python_tables import PythonTables
    from purebpf.kernel.instruments.allocators import Allocator, Function
    from purebpf.kernel.instruments.task_filter import TaskFilter
    from purebpf.kernel.programs.link import Link
    from purebpf.kernel.programs.program import Program
    from purebpf.kernel.unwind.programs import EarlierLookup
    from purebpf.kernel.unwind.user_stacks import Trace

__all__ = ["KINDS", "MemoryRequest", "MemoryTracer", "Site"]

KINDS = ("minor fault", "major fault", "mmap", "file mmap", "reserved", "brk", "malloc")
"""enum kind of bpf_src/mem/sites.h."""

_FAULTS = {"on_minor_fault": "minor-faults", "on_major_fault": "major-faults"}
_GROWTH = ("on_call", "on_call_end")
_STEADY = (200, 256)
"""Copies that a CPU may make in a second, and pages of its ring."""
_BURST = (2000, 1024)
"""The same with allocators: allocations come in bursts, before a walk has its tables."""


class MemoryRequest(NamedTuple):
    """What is traced.

    Attributes:
        allocators: files with functions to probe.
        settings: constants of the object.
        sizes: max_entries of its maps.
        call_graph: how user stacks are walked, see `load_walking`.
        native: as in `PythonTables`, for `python` among the settings.
        tree: follow the children of the target's processes.
    """

    allocators: tuple[Allocator, ...]
    settings: Mapping[str, Any]
    sizes: Mapping[str, int]
    call_graph: str = "auto"
    native: bool = False
    tree: bool = False


class Site(NamedTuple):
    """What one stack of a process has done, of one of `KINDS`.

    Attributes:
        stack: its number.
        times: faults, calls or allocations; `size` is their bytes, 0 of faults.
        freed: allocations that were freed.
        unfollowed: allocations of which it is not known whether they were freed.
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
        """What is added up under one."""
        return self.comm, self.pid, self.kind, self.stack

    def minus(self, before: Site) -> Site:
        """What came since."""
        return Site(
            *self.key,
            self.times - before.times,
            self.size - before.size,
            self.freed - before.freed,
            self.freed_size - before.freed_size,
            self.unfollowed - before.unfollowed,
            self.unfollowed_size - before.unfollowed_size,
        )


class MemoryTracer(Closing):
    """Traces from `start()` to `stop()`.

    Args:
        request: what.
        whose: the target.
        earlier: what a process had mapped at a time, see `UserStacks`.

    Attributes:
        call_graph: how stacks are walked.
        walking: finishes stacks that the programs could not; None with frame pointers.
        python: reads Python frames; None where nothing does.
        traced: paths of the allocators that are probed.
        refused: of those that could not be.

    Raises:
        KernelError, NotSupportedError: the kernel refused; nothing stays open. Needs BTF, uprobes
            for allocators, and atomic operations that return a value (Linux 5.12, commit
            5ca419f2864a, "bpf: Add BPF_FETCH field / create atomic_fetch_add instruction").
    """

    def __init__(
        self, request: MemoryRequest, whose: TaskFilter, earlier: EarlierLookup | None = None
    ) -> None:
        self.started_ns = self.ended_ns = 0
        self._missed = 0
        self.traced: list[str] = []
        self.refused: list[str] = []
        self._tickets = Tickets()
        self._tree: process_tree.ProcessTree | None = None
        with ExitStack() as stack:
            asked = whose._replace(command_pid=0, cpus=())
            self._probes = _choose_probes(request.allocators)
            programs = (*_FAULTS, *_GROWTH, *self._probes)
            copies, pages = _BURST if request.allocators else _STEADY
            spec = asked.apply(objects.spec("mem").only(*programs))
            spec = spec.set(
                **request.settings,
                max_depth=stack_maps.max_depth(),
                copies_per_second=copies,
            )
            spec = spec.resize(**request.sizes)
            if request.tree:
                spec = spec.set(has_tgids=True).resize(tgids=process_tree.CAPACITY)
            self._object, self.walking, self.call_graph = load_walking(
                spec, request.call_graph, load, stack, earlier, pages=pages
            )
            if self.walking is not None:
                self.walking.prepare()
            self.maps = self._object.maps
            asked.fill(self.maps)
            if request.tree:
                self._tree = stack.enter_context(
                    process_tree.ProcessTree(
                        self.maps["tgids"],
                        command_pid=whose.command_pid,
                        namespace=whose.namespace,
                    )
                )
            self.python = self._read_python(request, stack)
            self._links = stack.enter_context(ExitStack())
            self._attach(request.allocators)
            self._owned = stack.pop_all()

    def _read_python(self, request: MemoryRequest, stack: ExitStack) -> PythonTables | None:
        if self.walking is None or not request.settings.get("python"):
            return None
        lines = bool(request.settings.get("python_lines"))
        return read_python(self._object, self.walking, stack, lines=lines, native=request.native)

    def _attach(self, allocators: Iterable[Allocator]) -> None:
        programs = self._object.programs
        self._faults: list[PerfEvents] = []
        for name, event in _FAULTS.items():
            events = PerfEvents.sampling(None, 1, event=event, disabled=1)
            self._faults.append(self._links.enter_context(events))
            for opened in events:
                self._links.enter_context(programs[name].attach(opened, enable=False))
        self._own_faults = [
            self._links.enter_context(PerfEvent.software(event, pid=0, inherit=1, disabled=1))
            for event in _FAULTS.values()
        ]
        for name in _GROWTH:
            self._links.enter_context(programs[name].attach())
        self._attach_allocators(allocators)

    def _attach_allocators(self, allocators: Iterable[Allocator]) -> None:
        """Each that can be probed: what a process maps may not stop the run of another."""
        refusals: list[PurebpfError | OSError] = []
        for allocator in allocators:
            try:
                with ExitStack() as links:
                    self._probe(allocator, links)
                    self._links.push(links.pop_all())
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
        with opened_same(allocator) as path:
            for name, functions in (
                (self._probes[1], allocator.returning),
                (self._probes[0], allocator.functions),
            ):
                for link in _attach_probes(programs[name], path, allocator.pid, functions):
                    links.enter_context(link)

    def follow(self, pids: Collection[int]) -> None:
        """Take in processes that exist already."""
        self.maps["tgids"].update(dict.fromkeys(pids, 1))

    def start(self) -> None:
        """Begin."""
        self.started_ns = time.monotonic_ns()
        self._object.globals["phase"] = True
        for own in self._own_faults:  # first, and last below: a fault of ours is never missing
            own.enable()
        for events in self._faults:
            events.enable()

    def stop(self) -> None:
        """End; what was counted stays to be read."""
        for events in self._faults:
            events.disable()
        for own in self._own_faults:
            own.disable()
        self._object.globals["phase"] = False
        settle()
        self.ended_ns = time.monotonic_ns()
        self._count_faults()
        self._links.close()

    def look(self) -> None:
        """Take what was counted until now for all, and go on."""
        self.ended_ns = time.monotonic_ns()
        self._count_faults()

    def _count_faults(self) -> None:
        counted = stack_maps.sum_up(self.maps["stats"])["faults"]
        due = sum(reading.value for events in self._faults for reading in events.read())
        due -= sum(event.read().value for event in self._own_faults)
        self._missed = max(0, due - counted)

    def drain(self) -> None:
        """Finish the stacks that have come.

        Raises:
            KernelError: a table could not be filled.
        """
        if self.walking is not None:
            self.walking.drain()
            self._tickets.take(self.walking.take())
        if self.python is not None:
            self.python.drain()

    def _finish(self) -> None:
        if self.walking is not None:
            self.walking.finish()
        self.drain()

    def traces(self) -> dict[int, Trace]:
        """The stacks by number, those that user space finished among them.

        Raises:
            KernelError: the map could not be read.
        """
        return stack_maps.traces(self.maps["stacks"]) | dict(self._tickets.traces)

    def sites(self) -> list[Site]:
        """What was counted. `resolve` them before their stacks are looked up.

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

    def resolve(self, sites: Iterable[Site]) -> list[Site]:
        """The same with the numbers of their stacks as `traces` has them; all are finished.

        Raises:
            KernelError: a map could not be read, or a table filled.
        """
        self._finish()  # what was counted was copied before
        same = self._tickets.same(stack_maps.traces(self.maps["stacks"]))
        return [site._replace(stack=self._tickets.resolve(site.stack, same)) for site in sites]

    def stats(self) -> dict[str, int]:
        """Counters of the programs by field, and `faults_missed` and `children_missed`."""
        maps = self.maps
        stats = stack_maps.sum_up(maps["stats"]) | stack_maps.sum_up(maps["stack_stats"])
        stats |= stack_maps.sum_up(maps["unwind_stats"]) | stack_maps.sum_up(maps["python_stats"])
        stats["faults_missed"] = self._missed
        stats["children_missed"] = self._tree.missed if self._tree else 0
        stats["recursion_misses"] = sum(
            program.info.recursion_misses for program in self._object.programs.values()
        )
        return stats

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()


def _choose_probes(allocators: Collection[Allocator]) -> tuple[str, ...]:
    """The programs at the start and at the end of functions.

    A link to many functions is taken away at once. With one for each, the kernel waits for every
    CPU after each of them: 14 s for the 17 of a libc.
    """
    if not allocators:
        return ()
    return ("on_entries", "on_returns") if have_uprobe_multi() else ("on_entry", "on_return")


def _attach_probes(
    program: Program, path: str, pid: int, functions: Iterable[tuple[int, Function]]
) -> Iterator[Link]:
    places = {f"{path}:{offset:#x}": int(kind) for offset, kind in functions}
    if program.name in ("on_entries", "on_returns"):
        yield uprobe_multi.attach(program, places, pid=pid)
        return
    for where, cookie in places.items():
        yield uprobe.attach(program, where, pid=pid, cookie=cookie)
