"""The stacks that slow calls end in: the object that walks them, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from purebpf.measure.stacks.event_stacks import EventStackNames
from purebpf.observe.instruments.event_stacks import COPIES, PAGES, STACKS, EventStacks
from purebpf.observe.instruments.stack_tracer import StackRequest
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.symbols.frame import Frame, Unknown

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.observe.unwind.programs import EarlierLookup

__all__ = ["CallerNames", "load_stacks"]

_TRIED = "pair_end"
"""A program that walks, and needs no function to be loaded: whether this kernel takes it decides
how stacks are walked."""
_CONSTANTS = ".rodata"
_OWN = (".rodata", ".data", ".bss")
_PROBES = ("bpf_trampoline_", "bpf_trace_run", "bpf_get_stack", "kprobe_", "kretprobe_", "fprobe_")
_PROBE_PARTS = ("ftrace_trampoline", "rethook", "trace_call_bpf", "perf_trace_", "perf_call_bpf")
"""How the kernel calls programs at functions and tracepoints, by the names of its functions."""


def load_stacks(tracer: Object, call_graph: str, earlier: EarlierLookup) -> EventStacks:
    """Load bpf_src/latency_stacks.bpf.c; its programs are to be attached.

    Args:
        tracer: the object of bpf_src/latency.bpf.c, which shares its settings and maps.
        call_graph: how user stacks are walked.
        earlier: looks up the mappings of a process at a time.

    Raises:
        KernelError, NotSupportedError: as `EventStacks`.
    """
    settings = {**_constants(tracer), "python": True, "has_cookies": False}  # those of all kernels
    request = StackRequest(
        *("latency_stacks", (_TRIED,), settings, {"stacks": STACKS}, call_graph),
        copies=COPIES,
        pages=PAGES,
        shared={name: tracer.maps[name] for name in tracer.maps if not name.startswith(_OWN)},
        recent=True,
    )
    return EventStacks(request, TaskFilter(), earlier)


class CallerNames(EventStackNames):
    """Names the callers of slow calls."""

    def without_probe(self, frames: Iterable[Frame | Unknown]) -> Iterator[Frame | Unknown]:
        """Yield the frames without the frames of the probe."""
        inside = True
        for frame in frames:
            inside = inside and _is_of_probe(frame)
            if not inside:
                yield frame

    def spell(self, frame: Frame | Unknown) -> str:
        """The name of its function."""
        return f"{frame.address:#x}" if isinstance(frame, Unknown) else frame.name


def _constants(tracer: Object) -> dict[str, Any]:
    """Return the constants that an object was loaded with."""
    variables = tracer.spec.variables.values()
    return {
        variable.name: tracer.globals[variable.name]
        for variable in variables
        if variable.map.startswith(_CONSTANTS)
    }


def _is_of_probe(frame: Frame | Unknown) -> bool:
    if isinstance(frame, Unknown):
        return True
    name = frame.name
    return (
        frame.module == "[bpf]"
        or name.startswith(_PROBES)
        or any(part in name for part in _PROBE_PARTS)
    )
