"""The profiles to compare, and the layout of their comparison."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import output
from purebpf.tuples import NamedTuple

__all__ = ["DiffOptions", "build_parser", "parse"]

FORMATS = ("text", "html", "json")

_DESCRIPTION = """\
Show what changed between two saved profiles: in CPUs, or in percent of each
one's total if a profile does not know its rate. The text is a table of
functions, ordered by the change of their self time, without changes that the
chance of sampling explains; html is a flame graph, red where a function grew,
blue where it shrank."""

_EPILOG = """\
examples:
  purebpf diff monday.json.gz tuesday.json.gz
  purebpf diff monday.json.gz tuesday.json.gz -o change.html
  purebpf diff main.folded branch.folded --fail-over 2

With --fail-over, a function that grew by more than so many percentage points
is exit status 3: for continuous integration.

exit status: 0; 1 an error; 2 a wrong option; 3 with --fail-over.

Needs no privileges, and runs on any system. docs/diff.md"""


class DiffOptions(NamedTuple):
    """A frozen request. `fail_over` is in percentage points; None never fails."""

    before: str
    after: str
    format: str = "text"
    output: str | None = None
    fail_over: float | None = None
    everything: bool = False


def parse(argv: Sequence[str]) -> DiffOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    parsed = build_parser().parse_args(argv)
    format_name = parsed.format or _of_path(parsed.output)
    return DiffOptions(
        parsed.before, parsed.after, format_name, parsed.output, parsed.fail_over, parsed.everything
    )


def _of_path(path: str | None) -> str:
    """The format that a file's name asks for."""
    ending = (path or "").rpartition(".")[2].lower()
    return {"htm": "html"}.get(ending, ending if ending in FORMATS else "text")


def _points(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return value


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf diff", _DESCRIPTION, _EPILOG, usage="BEFORE AFTER")
    command_parser.add_argument(
        "before", metavar="BEFORE", help="a saved profile: JSON or folded; -: standard input"
    )
    command_parser.add_argument("after", metavar="AFTER", help="the profile to compare with it")
    parser.add_format(command_parser, FORMATS, "default: by the name of FILE, or text")
    command_parser.add_argument(
        *("-o", "--output"), metavar="FILE", type=output,
        help="write to FILE when it is complete; -: standard output",
    )  # fmt: skip
    command_parser.add_argument(
        "--all", dest="everything", action="store_true",
        help="also functions that differ by no more than chance explains (text)",
    )  # fmt: skip
    command_parser.add_argument(
        "--fail-over", metavar="PCT", type=_points,
        help="exit with status 3 if a function's self time grew by more than N points",
    )  # fmt: skip
    parser.take_defaults(command_parser, DiffOptions)
    command_parser.set_defaults(format=None)  # as the name of the file says
    return command_parser
