"""The command line of `purebpf triage`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int, seconds

__all__ = ["Options", "build_parser", "parse"]

DEFAULT_S = 60.0

_DESCRIPTION = """\
Show the whole machine in one screen: what uses the CPUs, what threads wait
for, how long they wait for a CPU, which system calls fail. Each part ends with
the command that looks closer."""

_EPILOG = """\
examples:
  purebpf triage       a minute
  purebpf triage 5     five seconds
  purebpf triage --format json 10 | jq .cpus

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.11 or
later. docs/triage.md"""


class Options(NamedTuple):
    """How long to look, at most so many lines for each part, and what becomes of the result."""

    duration_s: float = DEFAULT_S
    lines: int = 5
    format: str = "text"
    output: str | None = None
    strict: bool = False
    verbose: bool = False


def parse(argv: Sequence[str]) -> Options:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    return parser.pick(Options, parser.parse(build_parser(), argv, {}))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = parser.new("purebpf triage", _DESCRIPTION, _EPILOG, usage="[seconds]")
    made.add_argument(
        *("duration_s",), metavar="seconds", nargs="?", type=seconds, default=DEFAULT_S,
        help="how long to look (default %(default)g)",
    )  # fmt: skip
    output = made.add_argument_group("output")
    output.add_argument(
        *("-n", "--top"), dest="lines", metavar="N", type=positive_int, default=5,
        help="lines for each part (default %(default)s)",
    )  # fmt: skip
    output.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_output(output)
    return made
