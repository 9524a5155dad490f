"""The command line of `python -m purebpf.doctor`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.cli.arguments import output
from purebpf.cli.parser import Parser

__all__ = ["Options", "parse"]

_DESCRIPTION = """Say what BPF can do on this machine for this user: privileges, settings, kernel
features found by trying them, and what each command of purebpf would need.
"""

_EXAMPLES = """examples:
  python -m purebpf.doctor           what works here, and what is in the way
  python -m purebpf.doctor --all     with every feature that works, too
  python -m purebpf.doctor --json    for a bug report, or a program

exit status: 0 every command would run, 1 something is in the way of one
"""


class Options(NamedTuple):
    """What to print.

    Attributes:
        all: features that are there, too, not only those that are missing.
        json: JSON, which always has everything.
        output: a file for the result; None is standard output.
    """

    all: bool = False
    json: bool = False
    output: str | None = None


def parse(argv: Sequence[str]) -> Options:
    """The options, or the end of the process with a usage message (status 2)."""
    parser = Parser(
        prog="python -m purebpf.doctor",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="list what works, too")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    parser.add_argument(
        *("-o", "--output"), metavar="FILE", type=output, help="write here, not to the screen"
    )
    return Options(**vars(parser.parse_args(argv)))
