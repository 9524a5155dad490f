"""Page faults of the tasks of a summary, counted in the kernel, and their places."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.closable import Closing
from purebpf.loader.features import features
from purebpf.loader.host.cpus import online
from purebpf.loader.load.load import load
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.measure.target_ends import follow_descendants
from purebpf.observe.instruments import process_tree
from purebpf.observe.processes.process_tracker import Followed
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.results import Cause, count_cause
from purebpf.tools.summary.request import MODES, SummaryOptions
from purebpf.tools.summary.table import FaultPlace, Faults

if TYPE_CHECKING:
    from purebpf.observe.instruments.task_filter import TaskFilter

__all__ = ["FaultCounter"]

_KINDS = {
    "min": ("on_minor_fault", "minor-faults"),
    "maj": ("on_major_fault", "major-faults"),
}
_AREAS = ("[unknown]", "", "[anonymous]", "[heap]", "[stack]")
"""enum area of bpf_src/faults.bpf.c; a file has its own name."""
_FILE = 1
_PLACES = 16384


class FaultCounter(Closing):
    """Counts from `start()` until `stop()`; `take()` reads in between.

    Args:
        options: the tasks, the kinds of faults, and the grouping.
        whose: the target. A command, or the children of a process, are followed from fork to fork.

    Attributes:
        none: the faults of a group that had none.

    Raises:
        KernelError: the kernel refused something; nothing stays open.
        NotSupportedError: the kernel does not show its types (CONFIG_DEBUG_INFO_BTF).
    """

    def __init__(self, options: SummaryOptions, whose: TaskFilter) -> None:
        self._before: Counter[Any] = Counter()
        minor, major = (0 if options.faults in (kind, "all") else None for kind in _KINDS)
        self.none = Faults(minor, major)
        kinds = _KINDS.values() if options.faults == "all" else (_KINDS[options.faults],)
        with ExitStack() as stack:
            self._object = stack.enter_context(load(_spec(options, whose)))
            maps = self._object.maps
            whose._replace(command_pid=0, tree=False).fill(maps)
            self._tree = process_tree.follow(whose, maps, stack, tree=options.tree)
            if options.tree and options.pids:
                follow_descendants(options.pids, self._follow)
            self._followed: Followed | None = None
            if options.fault_places:
                self._followed = stack.enter_context(Followed(whose.command_pid))
                self._names = Symbolizer(self._followed.spaces)
            self._events: list[PerfEvent] = []
            for program, event_name in kinds:
                for cpu in online():
                    event = PerfEvent.software(
                        event_name, pid=-1, cpu=cpu, sample_period=1, disabled=1
                    )
                    self._events.append(stack.enter_context(event))
                    attach = self._object.programs[program].attach
                    stack.enter_context(attach(event, enable=False))
            self._owned = stack.pop_all()

    def _follow(self, pids: Collection[int]) -> None:
        self._object.maps["tgids"].update(dict.fromkeys(pids, 1))

    def start(self) -> None:
        """Count from now on."""
        for event in self._events:
            event.enable()
        if self._followed:
            self._followed.snapshot(())

    def drain(self) -> None:
        """Read the events of processes, so that the kernel's rings have room."""
        if self._followed:
            self._followed.drain()

    def stop(self) -> None:
        """Count no longer."""
        for event in self._events:
            event.disable()

    def names(self) -> dict[int, str]:
        """The command of each group that had a fault."""
        return {group: name.comm for group, name in self._object.maps["names"].items()}

    def take(self) -> dict[int, Faults]:
        """The faults since the last call, by group.

        Raises:
            KernelError: a map could not be read.
        """
        self.drain()
        counts = Counter(dict(self._object.maps["faults"].items()))
        places = Counter(dict(self._object.maps["places"].items()))
        now = counts + places
        new, self._before = now - self._before, now
        counted: dict[int, Counter[str]] = {}
        named: dict[int, Counter[FaultPlace]] = {}
        for key, count in new.items():
            if hasattr(key, "ip"):
                place = FaultPlace(_kind(key.kind), self._function(key), _mapping(key))
                named.setdefault(key.group, Counter())[place] += count
            else:
                counted.setdefault(key.group, Counter())[_kind(key.kind)] += count
        return {
            group: self.none.plus(
                Faults(kinds["minor"], kinds["major"], tuple(_ranked(named.get(group))))
            )
            for group, kinds in counted.items()
        }

    def _function(self, key: Any) -> str:
        from purebpf.results.model.spelling import spell_location

        (where,) = self._names.user(key.tgid, [key.ip], None)
        return spell_location(where)

    def causes(self) -> tuple[Cause, ...]:
        """Faults that are in no row.

        Raises:
            KernelError: an event could not be read.
        """
        stats = self._object.globals["stats"]
        happened = sum(event.read().value for event in self._events)
        missed = self._tree.missed if self._tree else 0
        return (
            count_cause("fault_rows_full", stats.rows_full, "page faults found no row"),
            count_cause(
                "fault_places_full", stats.places_full, "page faults are counted without a place"
            ),
            count_cause("fault_children_missed", missed, "new processes were not followed"),
            count_cause(
                "faults_missed",
                max(0, happened - stats.seen),
                "page faults of the machine were not seen: they came inside of a BPF program",
                self._is_targeted,
            ),
        )

    @property
    def _is_targeted(self) -> bool:
        values = self._object.globals
        return any(values[name] for name in ("has_tgids", "has_tids", "has_cgroup", "has_uid"))

    def close(self) -> None:
        """End it, and release its resources; again is harmless."""
        self._owned.close()


def _spec(options: SummaryOptions, whose: TaskFilter) -> Any:
    perf_event = bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT
    follows = bool(whose.command_pid or options.tree)
    spec = (
        whose._replace(command_pid=0, tree=False)
        .apply(objects.spec("faults"))
        .set(
            grouping=MODES.index("thread" if options.mode == "command" else options.mode),
            with_places=options.fault_places and os.uname().machine == "x86_64",
            has_find_vma=bool(features.have_helper(perf_event, bpf_func_id.BPF_FUNC_find_vma)),
        )
    )
    if follows:
        spec = spec.set(has_tgids=True).resize(tgids=process_tree.CAPACITY)
    programs = [program for kind, (program, _) in _KINDS.items() if options.faults in (kind, "all")]
    return spec.only(*programs).resize(
        places=_PLACES if options.fault_places else 1,
        names=max(options.row_entries // 4, 1) if options.mode not in ("total", "cgroup") else 1,
    )


def _kind(number: int) -> str:
    return ("minor", "major")[number]


def _mapping(key: Any) -> str:
    return str(key.file) if key.area == _FILE else _AREAS[key.area]


def _ranked(places: Mapping[FaultPlace, int] | None) -> list[FaultPlace]:
    """The places with their counts, the greatest first."""
    ranked = sorted((places or {}).items(), key=lambda item: (-item[1], item[0]))
    return [place._replace(times=count) for place, count in ranked]
