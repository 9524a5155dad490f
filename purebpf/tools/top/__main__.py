"""`purebpf top`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top.options import View, build_parser, parse

if TYPE_CHECKING:
    from purebpf.measure.stop import HasFileno
    from purebpf.tools.top.measuring import Measuring
    from purebpf.tools.top.screens.base import Reading

__all__ = ["build_parser", "main"]

NAME = "purebpf top"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: ProfileOptions, view: View) -> int:
    from purebpf.measure.naming import naming_until
    from purebpf.measure.run import prepare, run
    from purebpf.tools.top.measuring import Measuring
    from purebpf.tools.top.screen import screen

    make = partial(Measuring, options, view.screen, view.by, view.interval_s)
    with Output() as output, prepare(make, options.command, output.reader) as (measuring, ends):
        live_screen = screen(output, view, measuring, has_command=bool(options.command))

        def wait(*sources: HasFileno) -> bool:
            live_screen.follow()
            return measuring.wait(*sources)

        def show() -> None:
            measuring.due.pass_by()
            measuring.current.take()
            with naming_until(ends.stop, measuring.current.budget):
                live_screen.show(measuring.read(), time.strftime("%H:%M:%S"))

        reading = run(
            measuring,
            ends,
            show,
            wait=lambda *_: live_screen.wait(wait, ends),
            watching=live_screen,
            naming=_naming(measuring),
        )
        status = ends.status()
        by, sort = live_screen.by, live_screen.sort
        output.write(reading.text("in all", by, sort, view.lines))
        _explain(reading, verbose=view.verbose)
    if view.strict and reading.loss.any:
        return command.LOSS
    return status


def _explain(reading: Reading, *, verbose: bool) -> None:
    """Print the losses of the reading."""
    from purebpf.cli.loss import explain_profile, explain_table

    if reading.profile is not None:
        explain_profile(reading.profile, verbose=verbose)
    else:
        explain_table(reading.loss, verbose=verbose)


@contextmanager
def _naming(measuring: Measuring) -> Iterator[None]:
    """Show the progress of long work on a terminal; Ctrl-C ends it."""
    from purebpf.cli.progress import doing
    from purebpf.observe.symbols.interruptible import interruptible

    with doing("looking up names"), interruptible(measuring.current.budget):
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
