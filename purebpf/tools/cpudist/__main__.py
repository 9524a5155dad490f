"""`purebpf cpudist`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from purebpf.cli import command, latency_command, parser

__all__ = ["build_parser", "main"]

NAME = "purebpf cpudist"

_DESCRIPTION = """\
Show how long tasks stay on a CPU, or off it (-O). The kernel counts the times
in a histogram."""

_EPILOG = """\
examples:
  purebpf cpudist            turns on the CPU, at Ctrl-C
  purebpf cpudist -O 5       times off it, every 5 seconds
  purebpf cpudist -mT 1 10   in milliseconds, ten times, with the time
  purebpf cpudist -L -p 185  one for each thread of process 185
  purebpf cpudist -- make    a command and its children

Percentiles are at most a quarter off. The loss line at the end, on standard
error, says what the histograms do not include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.10 or
later. docs/cpudist.md"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: latency_command.SpanOptions) -> int:
    measure = "off_cpu" if options.off_cpu else "on_cpu"
    title = f"Tracing {'off' if options.off_cpu else 'on'}-CPU time... Hit Ctrl-C to end."
    return latency_command.run(measure, title, options)


def parse(argv: Sequence[str]) -> latency_command.SpanOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    return latency_command.parse(build_parser(), argv)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new(NAME, _DESCRIPTION, _EPILOG, usage=latency_command.USAGE)
    whose = latency_command.add_options(command_parser)
    whose.add_argument(
        *("-O", "--offcpu"), dest="off_cpu", action="store_true", help="times off the CPU"
    )
    whose.add_argument(
        "-I", "--include-idle", action="store_true", help="also count the idle tasks"
    )
    parser.take_defaults(command_parser, latency_command.SpanOptions)
    return command_parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
