"""`purebpf mem`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.tools.mem.options import build_parser, parse
from purebpf.tools.mem.request import title, with_limits

if TYPE_CHECKING:
    from purebpf.cli.destination import ResultOptions
    from purebpf.tools.mem.request import MemOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf mem"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: MemOptions, view: ResultOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli import run as results
    from purebpf.tools.mem.session import Memory

    options = with_limits(options)
    with results.measure(
        *(partial(Memory, options), options.command, title(options), view),
        duration_s=options.duration_s,
    ) as run:
        if "malloc_missing" in run.result.grown.about:
            options = options._replace(malloc=False)
        profile_name = options.shown
        profile = run.add_lines(getattr(run.result, profile_name))
        use = run.result._replace(**{profile_name: profile})
        status = run.end()
        from purebpf.cli.loss import explain_profile
        from purebpf.tools.mem.render import render, sums  # not before everything is measured

        run.write(partial(render, use, options, view))
        if len(run.written) == len(run.outputs):  # else the text has them, or the user asked not
            for line in sums(profile.about, options):
                command.say(line.rstrip("\n"))
        run.say_what_was_written(profile)
        explain_profile(profile, verbose=view.verbose)
    return command.LOSS if view.strict and profile.loss.any else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
