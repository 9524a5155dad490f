"""`purebpf wall`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.tools.wall.options import build_parser, parse
from purebpf.tools.wall.request import title

if TYPE_CHECKING:
    from purebpf.cli.destination import ResultOptions
    from purebpf.results import Profile
    from purebpf.tools.wall.request import WallOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf wall"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: WallOptions, view: ResultOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli import run as results
    from purebpf.cli.destination import head
    from purebpf.measure.cpu_limits import CpuLimitWatch
    from purebpf.measure.neighbours import NeighbourWatch
    from purebpf.tools.wall.session import Wall

    heading = head(title(options), view, details=view.delimited or view.offsets)
    if options.python and any(destination.format == "text" for destination in view.to):
        options = options._replace(python_lines=True)
    limits, neighbours = CpuLimitWatch(options.pids), NeighbourWatch(options.pids)
    with results.measure(
        *(partial(Wall, options), options.command, heading, view),
        duration_s=options.duration_s,
        marks_idle=True,
    ) as run:
        result = run.result
        notes = limits.sentences() or neighbours.sentences()
        profile = run.add_lines(result.profile)
        status = run.end()
        from purebpf.cli.places import brief  # not before everything is measured
        from purebpf.tools.wall.render import render

        run.write(partial(render, profile, result.threads, view, notes=notes))
        run.say_what_was_written(profile, brief)
        _explain(profile, verbose=view.verbose)
    return command.LOSS if view.strict and profile.loss.any else status


def _explain(profile: Profile, *, verbose: bool) -> None:
    """Print the sum, the cost, the loss line, and the fix for each loss."""
    from purebpf.cli.loss import explain_profile
    from purebpf.measure.time_loss import cost_line

    unsampled_ns = profile.about["unsampled_ns"]
    assert isinstance(unsampled_ns, int)
    command.say(
        f"event: {profile.about['event']}, {profile.about['samples']} samples; "
        f"{unsampled_ns / 1e9:.3f} s on a CPU of threads that none fell on"
    )
    command.say(cost_line(profile))
    explain_profile(profile, verbose=verbose)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
