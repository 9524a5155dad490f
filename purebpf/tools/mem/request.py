"""A request for memory by stack, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, StackOptions, TaskOptions

__all__ = [
    "ALLOCATION_STORAGE_SIZE",
    "COST_PERCENT",
    "OF_MALLOC",
    "SHOWN",
    "MemOptions",
    "profile_title",
    "title",
    "with_limits",
]

OF_MALLOC = ("unfreed", "allocated")
SHOWN = (*OF_MALLOC, "grown", "faults")
"""What one output can show: the fields of `purebpf.tools.mem.profiles.MemoryUse`."""

ALLOCATION_STORAGE_SIZE = 262144
"""Allocations that are not freed yet: 30 MB of the kernel's memory."""

COST_PERCENT = 5.0
"""Of a CPU, that tracing allocators may take from a target that a command line names."""


class MemOptions(TaskOptions, RunOptions, StackOptions):
    """The target, and the uses of its memory. Empty tuples and None mean: no restriction.

    `tree` adds the children of `pids`; the children of a command always belong to it. `malloc`
    traces allocators: the ones that the target has mapped, and `libraries` beside them; without a
    target, `libraries` alone. `duration_s` None: until a signal, or until the command or the last
    of `pids` ends. `show` is one of `SHOWN`; None: unfreed memory where allocators are traced, else
    growth. `python` reads the frames of Python functions, with `python_lines` also their lines;
    `native` keeps the frames of the interpreter itself. `cost_percent` ends the tracing of
    allocators once it has taken this share of a CPU from the target; 0 and None: never.
    """

    malloc: bool = True
    libraries: tuple[str, ...] = ()
    show: str | None = None
    allocation_storage_size: int = ALLOCATION_STORAGE_SIZE
    cost_percent: float | None = None

    @property
    def cpus(self) -> tuple[int, ...]:
        """All CPUs: memory from one CPU is freed on another."""
        return ()

    @property
    def has_target(self) -> bool:
        """True if the options restrict the target to less than the whole machine."""
        named = self.comm is not None or self.uid is not None
        return bool(self.pids or self.tids or self.cgroup or self.command or named)

    @property
    def traces_malloc(self) -> bool:
        """True if allocators are traced."""
        return self.malloc and (self.has_target or bool(self.libraries))

    @property
    def shown(self) -> str:
        """One of `SHOWN`."""
        return self.show or ("unfreed" if self.traces_malloc else "grown")


def with_limits(options: MemOptions) -> MemOptions:
    """Return the options for a person: a target that runs already has a limit of cost, and lines.

    The first lines of the text name the lines of Python.
    """
    if not options.has_target or options.command:
        return options
    percent = COST_PERCENT if options.cost_percent is None else options.cost_percent
    return options._replace(cost_percent=percent, python_lines=options.python)


_WHAT = {
    "unfreed": "Memory not freed",
    "allocated": "Memory allocated",
    "grown": "Growth of address spaces",
    "faults": "Page faults",
}


def profile_title(options: MemOptions, profile_name: str) -> str:
    """The sentence that heads a profile of one of `SHOWN`."""
    from purebpf.measure.headline import until, whose

    return (
        f"{_WHAT[profile_name]} of {whose(options, 'all processes')} by user stack{until(options)}"
    )


def title(options: MemOptions) -> str:
    """The sentence that heads the output."""
    from purebpf.measure.headline import until, whose  # which --help does not need

    traced = "malloc, growth and page faults" if options.traces_malloc else "growth and page faults"
    of = whose(options, "all processes")
    return f"Tracing {traced} of {of} by user stack{until(options)}"
