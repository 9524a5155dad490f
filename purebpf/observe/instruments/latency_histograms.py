"""`Spans`: how long waits in the run queue, turns on the CPU, or times off it take."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from purebpf import objects
from purebpf.closable import Closing
from purebpf.loader.load.load import load
from purebpf.observe.instruments import process_tree, sched_compat
from purebpf.observe.instruments.quiesce import settle
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.results.shape.distribution import Distribution, Group

__all__ = ["GROUPINGS", "MEASURES", "Spans"]

MEASURES = ("run_queue", "on_cpu", "off_cpu")
"""enum measure of bpf_src/spans.bpf.c."""

GROUPINGS = ("", "pid", "tid", "pidns", "cgroup")
"""enum grouping, by the kind of its groups."""

_WAKE_UPS = ("on_wakeup", "on_wakeup_new")
_SWITCHES = ("on_switch", "on_newtask", "on_exec")


class Spans(Closing):
    """Measures from `start()` to `stop()`; `read()` works at any time.

    Args:
        measure: one of MEASURES.
        by: one of GROUPINGS.
        unit_ns: the unit of the histograms.
        whose: the target of the spans; CPUs are those that they end on.
        include_idle: include the idle tasks.
        groups: groups that there is room for.

    Raises:
        KernelError, NotSupportedError: the kernel refused; nothing stays open. Needs BTF
            (CONFIG_DEBUG_INFO_BTF) and Linux 5.10.
    """

    def __init__(
        self,
        measure: str,
        *,
        by: str = "",
        unit_ns: int = 1000,
        whose: TaskFilter | None = None,
        include_idle: bool = False,
        groups: int = 1024,
    ) -> None:
        self._by = by
        whose = whose or TaskFilter()
        cpus = os.cpu_count() or 1
        programs = _SWITCHES + (_WAKE_UPS if measure == "run_queue" else ())
        spec = (
            whose.apply(sched_compat.adapt(objects.spec("spans").only(*programs)))
            .set(measure=MEASURES.index(measure), grouping=GROUPINGS.index(by))
            .set(unit_ns=unit_ns, include_idle=include_idle)
            .resize(
                rows=groups * cpus if by else 1,
                names=groups if by in ("pid", "tid") else 1,
            )
        )
        with ExitStack() as stack:
            self._object = stack.enter_context(load(spec))
            self._maps = self._object.maps
            whose.fill(self._maps)
            process_tree.follow(whose._replace(command_pid=0), self._maps, stack)
            for program in self._object.programs.values():
                stack.enter_context(program.attach())
            self._owned = stack.pop_all()

    def follow(self, pids: Collection[int]) -> None:
        """Take in processes that exist already."""
        self._maps["tgids"].update(dict.fromkeys(pids, 1))

    def start(self) -> None:
        """Begin."""
        self._object.globals["phase"] = True

    def stop(self) -> None:
        """End the measurement; its result can still be read."""
        self._object.globals["phase"] = False
        settle()

    def read(self) -> dict[int, tuple[int, list[int]]]:
        """By group: the sum in nanoseconds and the buckets, since the start.

        Raises:
            KernelError: a map could not be read.
        """
        if not self._by:
            return {0: _sum_up(self._maps["total"][0])}
        rows: dict[int, list[Any]] = {}
        for key, row in self._maps["rows"].items():
            rows.setdefault(key.group, []).append(row)
        return {group: _sum_up(parts) for group, parts in rows.items()}

    def distributions(
        self,
        now: Mapping[int, tuple[int, list[int]]],
        before: Mapping[int, tuple[int, list[int]]],
        cgroups: Mapping[int, str],
    ) -> list[Distribution]:
        """Return the distributions between two calls of `read()`, with names; `cgroups` has
        paths by id.
        """
        names = {group: name.comm for group, name in self._maps["names"].items()}
        if self._by == "cgroup":
            names = dict(cgroups)
        distributions = []
        for group, (total_ns, buckets) in now.items():
            if group in before:
                earlier_ns, earlier = before[group]
                total_ns -= earlier_ns
                buckets = [count - less for count, less in zip(buckets, earlier, strict=True)]
            if any(buckets) or not self._by:
                label = Group(self._by, group if self._by else 0, names.get(group, ""))
                distributions.append(Distribution(label, buckets, total_ns))
        return distributions

    def stats(self) -> dict[str, int]:
        """`struct stats` by field, `in_flight` spans, and `recursion_misses`."""
        per_cpu = self._maps["stats"][0]
        totals = {name: sum(getattr(cpu, name) for cpu in per_cpu) for name in per_cpu[0]._fields}
        totals["in_flight"] = totals["begun"] - totals["ended"] - totals["given_up"]
        totals["recursion_misses"] = sum(
            program.info.recursion_misses for program in self._object.programs.values()
        )
        return totals

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()


def _sum_up(parts: Iterable[Any]) -> tuple[int, list[int]]:
    parts = list(parts)
    buckets = [sum(counts) for counts in zip(*(part.buckets for part in parts), strict=True)]
    return sum(part.total_ns for part in parts), buckets
