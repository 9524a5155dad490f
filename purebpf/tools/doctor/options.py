"""The command line of `purebpf doctor`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import output
from purebpf.tuples import NamedTuple

__all__ = ["DoctorOptions", "build_parser", "parse"]

_DESCRIPTION = """Check what BPF can do on this machine for this user: privileges, settings,
kernel features found by trying them, and what each command of purebpf needs.
"""

_EXAMPLES = """examples:
  purebpf doctor           what works here, and what is in the way
  purebpf doctor --all     with every feature that works, too
  purebpf doctor --json    for a bug report, or a program

exit status: 0 every command would run, 1 something is in the way of one
"""


class DoctorOptions(NamedTuple):
    """The parts of the report to print.

    Attributes:
        all: also the present features, not only the missing ones.
        format: "text" or None, or "json", which always has everything.
        output: a file for the result; None is standard output.
    """

    all: bool = False
    format: str | None = None
    output: str | None = None


def parse(argv: Sequence[str]) -> DoctorOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    return DoctorOptions(**vars(build_parser().parse_args(argv)))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf doctor", _DESCRIPTION, _EXAMPLES, usage="")
    command_parser.add_argument("--all", action="store_true", help="also list what works")
    parser.add_format(command_parser)
    command_parser.add_argument(
        *("-o", "--output"), metavar="FILE", type=output, help="write to FILE instead of the screen"
    )
    parser.take_defaults(command_parser, DoctorOptions)
    return command_parser
