"""The target and the settings of the profiler, for a command line or a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, StackOptions, TargetOptions

__all__ = ["DEFAULT_FREQUENCY", "ProfileOptions", "title"]

DEFAULT_FREQUENCY = 49
"""Hertz: odd, so that it does not run in step with what happens 50 or 100 times a second."""


class ProfileOptions(TargetOptions, RunOptions, StackOptions):
    """The target to sample, and the settings. Empty tuples and None mean: no restriction.

    `frequency` is in Hertz; with `period`, the kernel samples every so many events instead.
    `call_graph` is the way to walk user stacks: "auto", "tables", "deep", "copy" or "fp".
    `python`: read the frames of Python functions, with `python_lines` also their lines; `native`:
    keep the frames of the interpreter itself. `async_tasks`: add the tasks of asyncio that await
    the one that runs. `gil`: only samples of threads that hold the GIL.
    `duration_s` None: until a signal, or until `command` or all of `pids` end. `tree`: the children
    of `pids`, too, those that exist and those to come. `by_thread`: tell threads apart. `timeline`:
    count by time, too, for formats that say when. `left_out`: the number of a process whose samples
    are only counted, as `own` in the facts of the profile; 0: none. `program`: FILE or
    FILE:NAME of a BPF program that sees each sample, and may drop it.
    """

    cgroup_map: str | None = None
    mount_namespace_map: str | None = None
    frequency: int = DEFAULT_FREQUENCY
    period: int | None = None
    user_stacks: bool = True
    kernel_stacks: bool = True
    include_idle: bool = False
    by_thread: bool = False
    timeline: bool = False
    gil: bool = False
    left_out: int = 0
    async_tasks: bool = False
    program: str | None = None


def title(options: ProfileOptions) -> str:
    """The sentence that heads the output, in the words of bcc's profile."""
    from purebpf.measure.headline import stacks, until, whose  # which --help does not need

    rate = f"every {options.period} events" if options.period else f"{options.frequency} Hertz"
    by = stacks(user=options.user_stacks, kernel=options.kernel_stacks)
    where = " on CPU#" + ",".join(map(str, options.cpus)) if options.cpus else ""
    return f"Sampling at {rate} of {whose(options)} by {by}{where}{until(options)}"
