"""The perf events that this machine has, by the names that `choose_event` takes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from purebpf.abi.perf import perf_type_id
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_names import event_named, known_names
from purebpf.syscall import pmu, tracefs

__all__ = ["list_events"]

_KINDS = {
    perf_type_id.PERF_TYPE_SOFTWARE: "software",
    perf_type_id.PERF_TYPE_HARDWARE: "hardware",
    perf_type_id.PERF_TYPE_HW_CACHE: "cache",
}
_ABSENT = frozenset({errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL})


def list_events() -> Iterator[tuple[str, str]]:
    """Yield the names of events with their kinds: software, hardware and cache events that the
    kernel opens, the named events of performance units, and tracepoints if tracefs is readable.
    """
    named = sorted((event_named(name).type, name) for name in known_names())
    for kind, name in named:
        if _opens(name):
            yield name, _KINDS[perf_type_id(kind)]
    for unit in pmu.names():
        for name in pmu.events(unit):
            yield f"{unit}/{name}/", f"event of {unit}"
    try:
        points = tracefs.tracepoint_names()
    except (KernelError, NotSupportedError):
        return
    for point in points:
        yield point, "tracepoint"


def _opens(name: str) -> bool:
    """Return False if this kernel or CPU does not have an event."""
    try:
        PerfEvent.open(name, pid=os.getpid(), disabled=1, exclude_kernel=1).close()
    except KernelError as error:
        return error.errno not in _ABSENT
    return True
