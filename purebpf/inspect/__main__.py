"""`python -m purebpf.inspect`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.inspect.options import build_parser, parse
from purebpf.inspect.request import Options

__all__ = ["build_parser", "main"]

NAME = "purebpf.inspect"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: Options) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.output import Output

    if options.stubs:
        from purebpf.inspect.session import read
        from purebpf.inspect.stubs import stubs

        with Output(options.output) as output:
            output.write([stubs(read(options.path))])
        return 0
    from purebpf.inspect.render import document, lines
    from purebpf.inspect.session import inspect

    with Output(options.output) as output:
        report = inspect(options)
        output.write([document(report)] if options.json else lines(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
