"""Probes by way of tracefs: for kernels before 4.17, and others without the kprobe or uprobe PMU.

Commit e12f03d7031a, "perf/core: Implement the 'perf_kprobe' PMU"; commit 33ea4b24277b, "perf/core:
Implement the 'perf_uprobe' PMU".

A line in `kprobe_events` or `uprobe_events` makes a tracepoint, which is a perf event like any
other; another line removes it. A killed process leaves its tracepoints, so names say which they
are: `purebpf/p_4711_1_vfs_read`.
Source: Documentation/trace/kprobetrace.rst and uprobetracer.rst.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING

from purebpf.closable import SoleOwner
from purebpf.errors import NotSupportedError
from purebpf.loader.host.fork_guard import OwnerProcess
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.syscall import tracefs

if TYPE_CHECKING:
    from purebpf.loader.perf.probe import Probe

__all__ = ["TracedProbe", "open_traced"]

_GROUP = "purebpf"
_NAME_LENGTH = 30
_ANYWHERE = -1
_numbers = itertools.count(1)


class TracedProbe(SoleOwner):
    """A perf event of a tracepoint made for it, which goes when it is closed."""

    def __init__(self, event: PerfEvent, table: str, name: str) -> None:
        self._event = event
        self._table = table
        self._name = name
        self._owner_process = OwnerProcess()

    def fileno(self) -> int:
        """The number of the event's descriptor."""
        return self._event.fileno()

    def close(self) -> None:
        """Close the event and remove the tracepoint. Twice is harmless."""
        name, self._name = self._name, ""
        self._event.close()
        if name and self._owner_process.is_here:
            tracefs.append(self._table, f"-:{_GROUP}/{name}")


def open_traced(probe: Probe) -> TracedProbe:
    """The probe as a perf event of a tracepoint.

    Raises:
        NotSupportedError: no tracefs, or one without such probes.
        KernelError: ENOENT, EINVAL, EILSEQ: it cannot be there; EACCES, EPERM.
    """
    table = f"{probe.pmu}_events"
    kind = "r" if probe.returns else "p"
    path = os.fsdecode(probe.name)
    spot = re.sub(r"\W", "_", path.rpartition("/")[2])[:_NAME_LENGTH]
    name = f"{kind}_{os.getpid()}_{next(_numbers)}_{spot}"
    if probe.pmu == "uprobe":
        counter = f"({probe.semaphore:#x})" if probe.semaphore else ""
        where = f"{path}:{probe.offset:#x}{counter}"
    else:
        where = f"{path}+{probe.offset}" if probe.offset else path
    try:
        tracefs.append(table, f"{kind}:{_GROUP}/{name} {where}")
    except FileNotFoundError:
        config = f"CONFIG_{probe.pmu.upper()}_EVENTS"
        reason = (
            f"this kernel does not have the {probe.pmu} PMU, and its tracefs does not have "
            f"{table} ({config})"
        )
        raise NotSupportedError(f"{probe.pmu}s", reason) from None
    try:
        number = tracefs.tracepoint_id(_GROUP, name)
        cpu = 0 if probe.pid == _ANYWHERE else _ANYWHERE
        event = PerfEvent.tracepoint(number, pid=probe.pid, cpu=cpu)
    except BaseException:
        tracefs.append(table, f"-:{_GROUP}/{name}")
        raise
    return TracedProbe(event, table, name)
