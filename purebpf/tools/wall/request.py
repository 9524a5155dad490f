"""A request for wall-clock time, by a command line or by a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, StackOptions, TargetOptions

__all__ = ["DEFAULT_FREQUENCY", "WallOptions", "title"]

DEFAULT_FREQUENCY = 99
"""Hertz: odd, so that it does not run in step with what happens 100 times a second."""


class WallOptions(TargetOptions, RunOptions, StackOptions):
    """The target, and how to sample it. Empty tuples and None mean: no restriction.

    `python` reads the frames of Python functions, with `python_lines` also their lines; `native`
    keeps the frames of the interpreter itself; `async_tasks` adds the tasks of asyncio that await
    the one that runs. `frequency` is in Hertz. `duration_s` None: until a signal, or until
    `command` ends.
    """

    user_threads_only: bool = False
    kernel_threads_only: bool = False
    user_stacks_only: bool = False
    kernel_stacks_only: bool = False
    frequency: int = DEFAULT_FREQUENCY
    async_tasks: bool = False


def title(options: WallOptions) -> str:
    """The sentence that heads the output."""
    from purebpf.measure.headline import until, whose  # which --help does not need

    return (
        f"Tracing the wall clock (us) of {whose(options)}, "
        f"sampling at {options.frequency} Hertz{until(options)}"
    )
