"""The heirs of a thread's event: the threads and processes that it starts."""

from __future__ import annotations

import errno

from purebpf.errors import KernelError
from purebpf.loader.perf.perf_event import PerfEvent

__all__ = ["CHILDREN_COUNT", "inherited_by_threads"]

CHILDREN_COUNT = (
    "children that start during the run are part of it: this kernel cannot leave them out "
    "(Linux 5.13)"
)


def inherited_by_threads() -> dict[str, int]:
    """Fields of struct perf_event_attr: for threads that a thread starts, not for its children.

    Linux 5.13 (commit 2b26f0aa0004, "perf: Support only inheriting events if cloned with
    CLONE_THREAD"). Without `inherit_thread`, children inherit the event, too.
    """
    try:
        PerfEvent.open(
            "dummy", pid=0, disabled=1, exclude_kernel=1, inherit=1, inherit_thread=1
        ).close()
    except KernelError as error:
        if error.errno == errno.EINVAL:
            return {"inherit": 1}
    return {"inherit": 1, "inherit_thread": 1}
