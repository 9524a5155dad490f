"""`purebpf doctor`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.doctor.options import DoctorOptions, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf doctor"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status: 1 if a command of purebpf would not run."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: DoctorOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.output import Output
    from purebpf.tools.doctor.render import document, lines
    from purebpf.tools.doctor.session import examine

    with Output(options.output) as output:
        report = examine()
        output.write(
            [document(report)]
            if options.format == "json"
            else lines(report, everything=options.all)
        )
    return command.FAILED if any(answer.obstacles for answer in report.commands) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
