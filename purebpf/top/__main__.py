"""`purebpf top`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.profile.request import Options
from purebpf.top.options import View, build_parser, parse

if TYPE_CHECKING:
    from purebpf.results import Profile
    from purebpf.symbols.budget import Budget

__all__ = ["build_parser", "main"]

NAME = "purebpf.top"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: Options, view: View) -> int:
    from purebpf.cli.loss import explain_profile
    from purebpf.measure.naming import naming_until
    from purebpf.measure.run import prepare, run
    from purebpf.profile.session import Profiler
    from purebpf.top.due import Due
    from purebpf.top.screen import screen

    make = partial(Profiler, options)
    with Output() as output, prepare(make, options.command, output.reader) as (profiler, ends):
        shown = screen(output, view, has_command=bool(options.command))
        due = Due(view.interval_s)
        before_s = 0.0

        def show() -> None:
            nonlocal before_s
            due.pass_by()
            profiler.take()
            elapsed_s, before_s = profiler.elapsed_s - before_s, profiler.elapsed_s
            with naming_until(ends.stop, profiler.budget):
                cpus = 1 / (options.frequency * elapsed_s)
                shown.show(profiler.last(), time.strftime("%H:%M:%S"), cpus)

        profile = run(
            profiler,
            ends,
            show,
            wait=lambda *_: shown.wait(
                lambda *sources: profiler.wait(*sources, at_most_s=due.left_s()), ends
            ),
            watching=shown,
            naming=_naming(profiler.budget),
        )
        status = ends.status()
        output.write(_table(profile, view, "in all"))
        explain_profile(profile, verbose=view.verbose)
    if view.strict and profile.loss.any:
        return command.LOSS
    return status


@contextmanager
def _naming(budget: Budget) -> Iterator[None]:
    """Say on a terminal what takes so long; Ctrl-C ends it."""
    from purebpf.cli.progress import doing
    from purebpf.measure.naming import interruptible

    with doing("looking up names"), interruptible(budget):
        yield


def _table(profile: Profile, view: View, heading: str) -> Iterable[str]:
    from purebpf.top.render import render

    return render(profile, by=view.by, lines=view.lines, heading=heading, sort=view.sort)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
