"""`purebpf new`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.new.options import NewOptions, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf new"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: NewOptions) -> int:
    from purebpf.cli.output import Output
    from purebpf.tools.new.session import create

    with Output(None) as output:
        paths, problem = create(options.name)
        output.write([f"{path}\n" for path in paths])
        if problem:
            command.note(f"The C was not compiled. {problem}")
            return command.FAILED
        output.write([f"Next: cd {options.name} && pytest\n"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
