"""`python -m purebpf.top`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.profile.request import Options
from purebpf.top.options import View, build_parser, parse

if TYPE_CHECKING:
    from purebpf.measure.stop import HasFileno
    from purebpf.profile.session import Profiler
    from purebpf.results import Profile

__all__ = ["build_parser", "main"]

NAME = "purebpf.top"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: Options, view: View) -> int:
    from purebpf.cli.loss import paragraphs, tell
    from purebpf.measure.child import Child
    from purebpf.measure.limits import raise_open_files
    from purebpf.measure.naming import interruptible
    from purebpf.measure.stop import Stop
    from purebpf.profile.session import Profiler

    with ExitStack() as stack:
        output = stack.enter_context(Output())
        stop = stack.enter_context(Stop())
        child = stack.enter_context(Child(options.command)) if options.command else None
        raise_open_files()
        profiler = stack.enter_context(Profiler(options, child.pid if child else 0))
        ends: list[HasFileno] = [stop]
        if child is not None:
            child.start()
            ends.append(child)
        _show(profiler, view, output, ends)
        with interruptible(profiler.budget):
            profile = profiler.stop()
        status = child.end() if child else 0
        output.write(_table(profile, view, "in all"))
        tell(paragraphs(profile))
    if view.strict and profile.loss.any:
        return command.LOSS
    return status


def _show(profiler: Profiler, view: View, output: Output, ends: Sequence[HasFileno]) -> None:
    """A table each interval, until the end."""
    from purebpf.top.screen import screen

    with command.collecting(), screen(output, by=view.by, lines=view.lines) as shown:
        while not profiler.wait(*ends, at_most_s=view.interval_s):
            profiler.take()
            shown.show(profiler.last(), time.strftime("%H:%M:%S"))


def _table(profile: Profile, view: View, heading: str) -> Iterable[str]:
    from purebpf.top.render import render

    return render(profile, by=view.by, lines=view.lines, heading=heading)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
