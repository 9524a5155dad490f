"""The input of `purebpf convert`, and its output files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.destination import ResultOptions, add_answer, add_destinations, destinations

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """\
Convert a saved profile to other formats. Each command that counts stacks saves
a profile with -o FILE.json or FILE.json.gz; convert also reads those of other
tools: perf.data, the text of perf script, pprof, speedscope, folded stacks. So
are windows of the agent, as its sink "dir" keeps them."""

_EPILOG = """\
examples:
  purebpf convert day.json.gz            functions and the heaviest stacks
  purebpf convert day.json.gz -o day.csv
  purebpf convert day.json.gz -o day.pb.gz -o day.speedscope.json
  purebpf convert day.json.gz --format csv > functions.csv
  purebpf convert stackcollapse.folded -o other.csv
  purebpf convert perf.data -o perf.html
  perf script | purebpf convert - -o perf.html
  purebpf convert cpu.pb.gz -o cpu.html          pprof, of Go for example

exit status: 0; 1 an error; 2 a wrong option.

Needs no privileges, and runs on any system. docs/formats.md"""


def parse(argv: Sequence[str]) -> tuple[str, ResultOptions]:
    """Return the file to read and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = command_parser.parse_args(argv)
    parsed.to = destinations(command_parser, parsed.formats, parsed.outputs)
    return parsed.path, parser.pick(ResultOptions, parsed, is_partial=True)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf convert", _DESCRIPTION, _EPILOG, usage="IN [-o OUT ...]")
    command_parser.add_argument(
        "path",
        metavar="IN",
        help="a saved profile, of whichever of these formats; -: standard input",
    )
    group = command_parser.add_argument_group("output")
    add_destinations(group)
    add_answer(group)
    parser.add_names(group)
    group.add_argument("-v", "--verbose", action="store_true", help="whole names (text)")
    return command_parser
