"""`purebpf setup`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.setup.options import build_parser, parse
from purebpf.tools.setup.request import SetupOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf setup"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status: 1 also when `status` finds a fault."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: SetupOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.output import Output
    from purebpf.tools.setup import render, session

    with Output() as output:
        if options.action == "pin":
            output.write(render.render_pinned(session.pin(options)))
        elif options.action == "unpin":
            done = session.unpin(options)
            output.write(render.render_unpinned(done))
            problems = [change.problem for change in done if change.problem]
            for problem in problems:
                command.note(f"{NAME}: {problem}")
            return command.FAILED if problems else 0
        else:
            status = session.status(options)
            output.write(render.render_status(status))
            return 0 if status.preflight.in_kernel and status.is_whole else command.FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
