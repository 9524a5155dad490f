"""A request for off-CPU time, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, StackOptions, TargetOptions

__all__ = ["DEFAULT_THRESHOLD_MS", "STATES", "OffCpuOptions", "title"]

DEFAULT_THRESHOLD_MS = 500.0
"""perf's: a sleep of half a second is worth a record of its own."""

STATES = "SDITtPWG"
"""The letters of ps(1) for threads that do not run; `G` are those of `S` that wait for the GIL."""


class OffCpuOptions(TargetOptions, RunOptions, StackOptions):
    """The target, and which of its off-CPU time. Empty tuples and None mean: no restriction.

    `states` are letters of ps(1). `duration_s` None: until a signal, or until `command` ends.
    `python` reads the frames of Python functions, with `python_lines` also their lines; `native`
    keeps the frames of the interpreter itself; `async_tasks` adds the tasks of asyncio that await
    the one that runs. `one_by_one` keeps each wait of `threshold_ms` or more apart, with its date.
    """

    user_threads_only: bool = False
    kernel_threads_only: bool = False
    user_stacks_only: bool = False
    kernel_stacks_only: bool = False
    states: str | None = None
    preempt: bool = False
    threshold_ms: float = DEFAULT_THRESHOLD_MS
    min_us: int = 0
    max_us: int | None = None
    waker: bool = False
    inflight: bool = False
    one_by_one: bool = False
    async_tasks: bool = False

    @property
    def wanted_states(self) -> str:
        """The letters of the states to account."""
        states = STATES if self.states is None else self.states
        if "S" in states and "G" not in states:
            states += "G"
        return states + "R" if self.preempt and "R" not in states else states


def title(options: OffCpuOptions) -> str:
    """The sentence that heads the output, in the words of bcc's offcputime."""
    from purebpf.measure.headline import stacks, until, whose  # which --help does not need

    kinds = {(True, False): "user threads", (False, True): "kernel threads"}
    kind = (options.user_threads_only, options.kernel_threads_only)
    by = stacks(user=not options.kernel_stacks_only, kernel=not options.user_stacks_only)
    of = whose(options, kinds.get(kind, "all threads"))
    return f"Tracing off-CPU time (us) of {of} by {by}{until(options)}"
