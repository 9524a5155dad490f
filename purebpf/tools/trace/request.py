"""A request to trace system calls, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["TraceOptions"]


class TraceOptions(TargetOptions, RunOptions):
    """The tasks and the calls to trace. Empty tuples and None mean: no restriction.

    `events`: names, patterns and groups of calls, and tracepoints
    (`sched:*`), as `-e` takes them. `tree`: the children of
    `pids` as well. `failed`: only calls that failed. `least_ms`: only calls that took as long.
    `most_events`: end after so many. `string_size`: bytes to print of strings and buffers.
    `paths`: print the paths of descriptors. `call_graph`: with user stacks, walked in one of the
    ways of `purebpf.observe.instruments.call_graph.CHOICES`. `duration_s` None: until a signal, or
    until `command` or all of `pids` end.
    """

    events: tuple[str, ...] = ()
    failed: bool = False
    least_ms: float = 0.0
    most_events: int | None = None
    string_size: int = 32
    paths: bool = False
    call_graph: str = ""

    @property
    def traces_all_calls(self) -> bool:
        """True if no call of a process is left out that may open or close a descriptor."""
        is_chosen = self.tids or self.comm or self.cpus or self.cgroup or self.uid is not None
        return not (self.events or self.failed or self.least_ms or is_chosen)
