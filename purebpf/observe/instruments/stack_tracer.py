"""`StackTracer`: a shipped object that counts events by user stack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.closable import Closing
from purebpf.loader.load.load import load
from purebpf.observe.instruments import process_tree, sched_compat, stack_maps
from purebpf.observe.instruments.call_graph import load_walking, read_python
from purebpf.observe.instruments.quiesce import settle
from purebpf.observe.unwind.tickets import Tickets
from purebpf.syscall import host_clock
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.maps.map import Map
    from purebpf.observe.instruments.task_filter import TaskFilter
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.observe.unwind.user_stacks import Finished, Trace

__all__ = ["StackRequest", "StackTracer"]


class StackRequest(NamedTuple):
    """The events to trace.

    Attributes:
        object: the name of a shipped object with user_stacks.h, `phase` and `stats`.
        programs: those to load.
        settings: constants of the object.
        sizes: max_entries of its maps.
        call_graph: how user stacks are walked, see `load_walking`.
        native: as in `PythonTables`, for `python` among the settings.
        tree: follow the children of the target's processes.
        copies: that a CPU may make in a second.
        pages: of its ring of copies.
        shared: maps of another object, which replace the maps with these names.
        recent: if all are in use, a new stack replaces one that was not seen for long.
    """

    object: str
    programs: tuple[str, ...]
    settings: Mapping[str, Any]
    sizes: Mapping[str, int]
    call_graph: str = "auto"
    native: bool = False
    tree: bool = False
    copies: int = 200
    pages: int = 256
    shared: Mapping[str, Map] = {}
    recent: bool = False


class StackTracer(Closing, ABC):
    """Traces from `start()` to `stop()`.

    Args:
        request: the events.
        whose: the target.
        earlier: returns the mappings of a process at a time, see `UserStacks`.

    Attributes:
        call_graph: how stacks are walked.
        walking: finishes stacks that the programs could not; None with frame pointers.
        python: reads Python frames; None where nothing does.
        started_ns, ended_ns: of CLOCK_MONOTONIC.

    Raises:
        KernelError, NotSupportedError: the kernel refused; nothing stays open. Needs BTF, and
            atomic operations that return a value (Linux 5.12, commit 5ca419f2864a, "bpf: Add
            BPF_FETCH field / create atomic_fetch_add instruction").
    """

    def __init__(
        self, request: StackRequest, whose: TaskFilter, earlier: EarlierLookup | None = None
    ) -> None:
        self.started_ns = self.ended_ns = 0
        self._tickets = Tickets()
        self._tree: process_tree.ProcessTree | None = None
        with ExitStack() as stack:
            asked = whose._replace(command_pid=0)
            spec = asked.apply(objects.spec(request.object).only(*request.programs))
            spec = spec.set(
                **request.settings,
                max_depth=stack_maps.max_depth(),
                copies_per_second=request.copies,
            ).resize(**request.sizes)
            if request.recent:
                spec = spec.configure("stacks", type="lru_hash")
            if request.tree:
                spec = spec.set(has_tgids=True).resize(tgids=process_tree.CAPACITY)
            if "task_storage" in spec.variables:
                spec = sched_compat.adapt(spec)
            shared = {name: request.shared[name] for name in request.shared.keys() & spec.maps}
            spec = spec.resize(**{name: shared[name].info.max_entries for name in shared})
            self._object, self.walking, self.call_graph = load_walking(
                *(spec, request.call_graph, partial(load, maps=shared), stack, earlier),
                pages=request.pages,
                lines=bool(request.settings.get("python_lines")),
            )
            if self.walking is not None:
                self.walking.prepare()
            self.maps = self._object.maps
            asked.fill(self.maps)
            followed = whose if request.tree else asked
            self._tree = process_tree.follow(followed, self.maps, stack, tree=request.tree)
            self.python = None
            if self.walking is not None and request.settings.get("python"):
                lines = bool(request.settings.get("python_lines"))
                self.python = read_python(
                    self._object, self.walking, stack, lines=lines, native=request.native
                )
            self._links = stack.enter_context(ExitStack())
            self.attach(self._links)
            self._owned = stack.pop_all()

    @abstractmethod
    def attach(self, links: ExitStack) -> None:
        """Attach the programs; `links` closes them."""

    def follow(self, pids: Collection[int]) -> None:
        """Follow the processes that exist already."""
        self.maps["tgids"].update(dict.fromkeys(pids, 1))

    def start(self) -> None:
        """Begin."""
        self.started_ns = host_clock.monotonic_ns()
        self._object.globals["phase"] = True

    def stop(self) -> None:
        """End; the counts can still be read."""
        self._object.globals["phase"] = False
        settle()
        self.look()
        self._links.close()

    def look(self) -> None:
        """Read all counts up to now."""
        self.ended_ns = host_clock.monotonic_ns()

    def drain(self) -> None:
        """Finish the stacks that have come.

        Raises:
            KernelError: a table could not be filled.
        """
        if self.walking is not None:
            self.walking.drain()
            self.take(self.walking.take())
        if self.python is not None:
            self.python.drain()

    def take(self, finished: Iterable[tuple[Finished, int]]) -> None:
        """Keep stacks that were finished."""
        self._tickets.take(finished)

    def finish(self) -> None:
        """Finish all stacks that were copied until now.

        Raises:
            KernelError: a table could not be filled.
        """
        if self.walking is not None:
            self.walking.finish()
        self.drain()  # what was counted was copied before

    def traces(self) -> dict[int, Trace]:
        """The stacks by number, those that user space finished among them.

        Raises:
            KernelError: the map could not be read.
        """
        return stack_maps.traces(self.maps["stacks"]) | dict(self._tickets.traces)

    def resolve(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the numbers in `traces` of the stacks that programs counted under these; all are
        finished.

        Raises:
            KernelError: a map could not be read, or a table filled.
        """
        self.finish()
        same = self._tickets.same(stack_maps.traces(self.maps["stacks"]))
        return {number: self._tickets.resolve(number, same) for number in numbers}

    def stats(self) -> dict[str, int]:
        """Counters of the programs by field, and `children_missed` and `recursion_misses`."""
        maps = self.maps
        stats = stack_maps.sum_up(maps["stats"]) | stack_maps.sum_up(maps["stack_stats"])
        stats |= stack_maps.sum_up(maps["unwind_stats"]) | stack_maps.sum_up(maps["python_stats"])
        stats["children_missed"] = self._tree.missed if self._tree else 0
        stats["recursion_misses"] = sum(
            program.info.recursion_misses for program in self._object.programs.values()
        )
        return stats

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()
