"""`Spans`: how long waits in the run queue, turns on the CPU, or times off it take."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from purebpf import objects
from purebpf.closing import Closing
from purebpf.kernel import sched
from purebpf.kernel.object import load
from purebpf.report.distribution import Distribution, Group
from purebpf.syscall.membarrier import wait_for_all_cpus

__all__ = ["GROUPINGS", "MEASURES", "SpanFilter", "Spans"]

MEASURES = ("run_queue", "on_cpu", "off_cpu")
"""enum measure of bpf_src/spans.bpf.c."""

GROUPINGS = ("", "pid", "tid", "pidns", "cgroup")
"""enum grouping, by the kind of its groups."""

_WAKE_UPS = ("on_wakeup", "on_wakeup_new")
_SWITCHES = ("on_switch", "on_newtask", "on_exec")
_CPU_WORDS = 64  # MAX_CPUS / 64
_SETTLE_S = 0.01


class SpanFilter(NamedTuple):
    """Whose spans; everybody's by default.

    Attributes:
        pids: these processes, and their children from now on.
        tids: these threads.
        command_pid: a child that waits to execute a command: from its execve on, with children.
        cgroup_fd: tasks in and below the cgroup v2 directory that this is a descriptor of.
        cpus: spans that end on these.
        include_idle: those of the idle tasks as well.
        namespace: the pid namespace to number tasks in, as (device, inode); (0, 0): the initial.
    """

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    command_pid: int = 0
    cgroup_fd: int | None = None
    cpus: tuple[int, ...] = ()
    include_idle: bool = False
    namespace: tuple[int, int] = (0, 0)


class Spans(Closing):
    """Measures from `start()` to `stop()`; `read()` works at any time.

    Args:
        measure: one of MEASURES.
        by: one of GROUPINGS.
        unit_ns: the unit of the histograms.
        whose: a restriction.
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
        whose: SpanFilter | None = None,
        groups: int = 1024,
    ) -> None:
        self._by = by
        whose = whose or SpanFilter()
        cpus = os.cpu_count() or 1
        programs = _SWITCHES + (_WAKE_UPS if measure == "run_queue" else ())
        spec = (
            sched.adapted(objects.spec("spans").only(*programs))
            .set(measure=MEASURES.index(measure), grouping=GROUPINGS.index(by), unit_ns=unit_ns)
            .set(**_settings(whose))
            .resize(
                tgids=len(whose.pids) or 1,
                tids=len(whose.tids) or 1,
                rows=groups * cpus if by else 1,
                names=groups if by in ("pid", "tid") else 1,
            )
        )
        with ExitStack() as stack:
            self._object = stack.enter_context(load(spec))
            self._maps = self._object.maps
            self._maps["tgids"].update(dict.fromkeys(whose.pids, 1))
            self._maps["tids"].update(dict.fromkeys(whose.tids, 1))
            if whose.cgroup_fd is not None:
                self._maps["cgroup"][0] = whose.cgroup_fd
            for program in self._object.programs.values():
                stack.enter_context(program.attach())
            self._owned = stack.pop_all()

    def start(self) -> None:
        """Begin."""
        self._object.globals["phase"] = True

    def stop(self) -> None:
        """End; what was measured stays to be read."""
        self._object.globals["phase"] = False
        if not wait_for_all_cpus():
            time.sleep(_SETTLE_S)

    def read(self) -> dict[int, tuple[int, list[int]]]:
        """By group: the sum in nanoseconds and the buckets, since the start.

        Raises:
            KernelError: a map could not be read.
        """
        if not self._by:
            return {0: _summed(self._maps["total"][0])}
        rows: dict[int, list[Any]] = {}
        for key, row in self._maps["rows"].items():
            rows.setdefault(key.group, []).append(row)
        return {group: _summed(parts) for group, parts in rows.items()}

    def distributions(
        self,
        now: Mapping[int, tuple[int, list[int]]],
        before: Mapping[int, tuple[int, list[int]]],
        cgroups: Mapping[int, str],
    ) -> list[Distribution]:
        """What came between two calls of `read()`, with names; `cgroups` has paths by id."""
        names = {group: name.comm for group, name in self._maps["names"].items()}
        if self._by == "cgroup":
            names = dict(cgroups)
        found = []
        for group, (total_ns, buckets) in now.items():
            if group in before:
                earlier_ns, earlier = before[group]
                total_ns -= earlier_ns
                buckets = [count - less for count, less in zip(buckets, earlier, strict=True)]
            if any(buckets) or not self._by:
                label = Group(self._by, group if self._by else 0, names.get(group, ""))
                found.append(Distribution(label, buckets, total_ns))
        return found

    def stats(self) -> dict[str, int]:
        """`struct stats` by field, `in_flight` spans, and `recursion_misses`."""
        per_cpu = self._maps["stats"][0]
        found = {name: sum(getattr(cpu, name) for cpu in per_cpu) for name in per_cpu[0]._fields}
        found["in_flight"] = found["begun"] - found["ended"] - found["given_up"]
        found["recursion_misses"] = sum(
            program.info.recursion_misses for program in self._object.programs.values()
        )
        return found

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()


def _settings(whose: SpanFilter) -> dict[str, Any]:
    device, inode = whose.namespace
    return {
        "include_idle": whose.include_idle,
        "has_tgids": bool(whose.pids),
        "has_tids": bool(whose.tids),
        "has_cgroup": whose.cgroup_fd is not None,
        "has_cpus": bool(whose.cpus),
        "cpus": sched.bit_words(whose.cpus, _CPU_WORDS),
        "command_tgid": whose.command_pid,
        "pid_namespace_dev": device,
        "pid_namespace_ino": inode,
    }


def _summed(parts: Iterable[Any]) -> tuple[int, list[int]]:
    parts = list(parts)
    buckets = [sum(counts) for counts in zip(*(part.buckets for part in parts), strict=True)]
    return sum(part.total_ns for part in parts), buckets
