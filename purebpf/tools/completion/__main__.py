"""`purebpf completion`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.completion.options import CompletionOptions, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf completion"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: CompletionOptions) -> int:
    from importlib import import_module

    from purebpf.cli.output import Output
    from purebpf.tools.completion.model import describe_commands

    script = import_module(f"purebpf.tools.completion.{options.shell}").script
    with Output() as output:
        output.write([script(describe_commands())])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
