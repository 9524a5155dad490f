"""`purebpf offcpu`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.tools.offcpu.options import build_parser, parse
from purebpf.tools.offcpu.request import title

if TYPE_CHECKING:
    from purebpf.cli.destination import ResultOptions
    from purebpf.results import Profile
    from purebpf.tools.offcpu.request import OffCpuOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf offcpu"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: OffCpuOptions, view: ResultOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli import run as results
    from purebpf.cli.destination import head
    from purebpf.measure.disk_users import DiskUsers
    from purebpf.tools.offcpu.session import OffCpu

    heading = head(title(options), view, details=view.delimited or view.offsets)
    if options.python and any(destination.format == "text" for destination in view.to):
        options = options._replace(python_lines=True)
    users = DiskUsers()
    with results.measure(
        *(partial(OffCpu, options), options.command, heading, view),
        duration_s=options.duration_s,
        marks_idle=True,
    ) as run:
        profile = run.add_lines(run.result)
        status = run.end()
        from purebpf.cli.places import brief  # not before everything is measured
        from purebpf.tools.offcpu.render import render, waits_for_disks

        notes = [users.sentence()] if waits_for_disks(profile) else []
        run.write(partial(render, profile, view, notes=[note for note in notes if note]))
        run.say_what_was_written(profile, brief)
        _explain(profile, verbose=view.verbose)
    return command.LOSS if view.strict and profile.loss.any else status


def _explain(profile: Profile, *, verbose: bool) -> None:
    """Explain the number of samples, their cost, the losses, and the fix for each loss."""
    from purebpf.cli.loss import explain_profile
    from purebpf.measure.time_loss import cost_line

    still = sum(row.weight for row in profile.rows() if row.marks.is_open)
    command.say(
        f"off-CPU: {profile.total / 1000000000.0:.3f} s in {profile.about['elapsed_s']} s; "
        f"{still / 1000000000.0:.3f} s in flight at the end (~)"
    )
    command.say(cost_line(profile))
    explain_profile(profile, verbose=verbose)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
