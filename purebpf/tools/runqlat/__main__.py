"""`purebpf runqlat`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from purebpf.cli import command, latency_command, parser

__all__ = ["build_parser", "main"]

NAME = "purebpf runqlat"

_DESCRIPTION = """\
Show how long tasks wait in a run queue: from the wake-up, or from the moment
they lose the CPU to another task, until they run. The kernel counts the waits
in a histogram."""

_EPILOG = """\
examples:
  purebpf runqlat            one histogram, at Ctrl-C
  purebpf runqlat 1 10       one for each second, ten times
  purebpf runqlat -mT 5      in milliseconds, with the time
  purebpf runqlat -P 5       one for each process
  purebpf runqlat -p 185     process 185; --tree: and children
  purebpf runqlat -- make    a command and its children

Percentiles are at most a quarter off. The loss line at the end, on standard
error, says what the histograms do not include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.10 or
later. docs/runqlat.md"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: latency_command.SpanOptions) -> int:
    return latency_command.run(
        "run_queue", "Tracing run queue latency... Hit Ctrl-C to end.", options
    )


def parse(argv: Sequence[str]) -> latency_command.SpanOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    return latency_command.parse(build_parser(), argv)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new(NAME, _DESCRIPTION, _EPILOG, usage=latency_command.USAGE)
    latency_command.add_options(command_parser)
    parser.take_defaults(command_parser, latency_command.SpanOptions)
    return command_parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
