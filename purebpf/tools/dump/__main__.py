"""`purebpf dump`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.dump.options import DumpOptions, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf dump"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: DumpOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.output import Output
    from purebpf.results.model.width import fold
    from purebpf.tools.dump.render import document, lines
    from purebpf.tools.dump.session import dump

    with Output(options.output) as output:
        dumped = dump(
            options.pid,
            native=options.native,
            kernel=not options.user_stacks_only,
            tasks=options.async_tasks,
        )
        text = (fold(line, output.columns) for line in lines(dumped, verbose=options.verbose))
        output.write([document(dumped)] if options.json else text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
