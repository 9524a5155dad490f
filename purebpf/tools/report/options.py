"""The file to read, and the output."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.destination import ResultOptions, add_answer, add_destinations, destinations
from purebpf.tuples import NamedTuple

__all__ = ["ReportOptions", "build_parser", "parse"]

_DESCRIPTION = """\
Read a perf.data file, of purebpf.tools.record or of perf record, and print its
stacks with function names."""

_EPILOG = """\
examples:
  purebpf report                  perf.data here: functions, heaviest stacks
  purebpf report --all            every function and stack
  purebpf report app.data --format folded
  purebpf report -o out.pb.gz -o out.json        two formats at once
  purebpf report -e page-faults --weight period
  purebpf report --records prio   records of an own program, by a member

The loss line at the end, on standard error, says what the file does not have
and how many addresses have no name.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict.

Needs no privileges to read a file; CAP_SYSLOG to name the kernel's functions.
docs/report.md"""


class ReportOptions(NamedTuple):
    """The file to read. `event` None: the first that has samples.

    `records`: show the records that a user's own program wrote, instead of stacks: "" shows each,
    and the name of a member counts them by its value; None shows stacks.
    """

    path: str = "perf.data"
    event: str | None = None
    records: str | None = None
    weight: str | None = None


def parse(argv: Sequence[str]) -> tuple[ReportOptions, ResultOptions]:
    """Return the input and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = command_parser.parse_args(argv)
    if parsed.file is not None:
        if parsed.path != ReportOptions().path:
            command_parser.error("FILE and --input exclude each other")
        parsed.path = parsed.file
    parsed.to = destinations(command_parser, parsed.formats, parsed.outputs)
    if parsed.records is not None and any(to.format not in ("text", "json") for to in parsed.to):
        command_parser.error("--records has the formats text and json only")
    return parser.pick(ReportOptions, parsed), parser.pick(ResultOptions, parsed, is_partial=True)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf report", _DESCRIPTION, _EPILOG, usage="[FILE]")
    command_parser.add_argument(
        "file", nargs="?", metavar="FILE",
        help="the file to read, - for standard input (default: perf.data)",
    )  # fmt: skip
    command_parser.add_argument(
        "-i", "--input", dest="path", metavar="FILE", help="the same, as perf report has it"
    )
    command_parser.add_argument(
        "-e", "--event", metavar="EVENT",
        help="the event to report, if the file has several (default: the first that has samples)",
    )  # fmt: skip
    command_parser.add_argument(
        *("--weight",), choices=("samples", "period"),
        help="count samples, or add up their periods: ns of a clock (default: samples; periods "
             "for offcpu-time and similar)",
    )  # fmt: skip
    command_parser.add_argument(
        *("--records",), nargs="?", const="", metavar="MEMBER",
        help="show the records that the --program of purebpf record wrote, instead of stacks; with "
             "MEMBER, count them by its value (text or json)",
    )  # fmt: skip
    group = command_parser.add_argument_group("output")
    add_destinations(group)
    add_answer(group)
    parser.add_names(group)
    parser.add_strict(group)
    parser.take_defaults(command_parser, ReportOptions)
    return command_parser
