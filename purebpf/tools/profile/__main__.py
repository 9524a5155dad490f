"""`purebpf profile`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.tools.profile.options import build_parser, parse
from purebpf.tools.profile.request import title

if TYPE_CHECKING:
    from purebpf.cli.destination import ResultOptions
    from purebpf.results import Profile
    from purebpf.tools.profile.request import ProfileOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf profile"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: ProfileOptions, view: ResultOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli import run as results
    from purebpf.measure.headline import name_target
    from purebpf.measure.neighbours import NeighbourWatch, PressureWatch
    from purebpf.tools.profile.session import Profiler

    options = _adapt(options, view)
    queues = PressureWatch() if not name_target(options) else NeighbourWatch(options.pids)
    make = partial(Profiler, options)
    with results.measure(
        *(make, options.command, title(options), view),
        take=Profiler.take,
        duration_s=options.duration_s,
    ) as run:
        profile = run.add_lines(run.result)
        notes = queues.sentences()
        status = run.end()
        from purebpf.results.formats.answer import cpus_of_sample, functions
        from purebpf.tools.profile.render import render  # not before everything is measured

        run.write(partial(render, profile, view, notes=notes, parents=_parents(options)))
        run.say_what_was_written(profile, partial(functions, cpus=cpus_of_sample(profile)))
        _explain(options, profile, verbose=view.verbose)
    return command.LOSS if view.strict and profile.loss.any else status


def _parents(options: ProfileOptions) -> list[str]:
    """The commands whose children are sampled, too."""
    if not options.tree:
        return []
    from purebpf.measure.target_names import name_commands

    return name_commands(options.pids)


def _adapt(options: ProfileOptions, view: ResultOptions) -> ProfileOptions:
    """Leave out this process, and read lines of Python for a text, if the run is short enough.

    With lines, each place in a function is a stack of its own. There must be room for one of each
    sample.
    """
    if os.getpid() not in options.pids:
        options = options._replace(left_out=os.getpid())
    is_text = any(destination.format == "text" for destination in view.to)
    if is_text and options.python and options.duration_s is not None and not options.period:
        samples = options.duration_s * options.frequency * (os.cpu_count() or 1)
        if samples <= options.stack_storage_size:
            return options._replace(python_lines=True)
    return options


def _explain(options: ProfileOptions, profile: Profile, *, verbose: bool) -> None:
    """Print the samples, the losses, and the fix for each loss."""
    from purebpf.cli.loss import explain_profile, say_each
    from purebpf.measure.headline import name_target
    from purebpf.tools.profile.render import sample_lines

    about = profile.about
    say_each(sample_lines(profile, name_target(options)))
    if verbose:
        command.say(
            f"samples: {about['counted']} counted, {about['idle']} idle, "
            f"{about['filtered']} outside the target"
        )
    explain_profile(profile, verbose=verbose)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
