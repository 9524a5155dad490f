"""The command line of `purebpf exec`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import positive_int
from purebpf.tools.exec.request import ExecOptions
from purebpf.tuples import NamedTuple

__all__ = ["Columns", "build_parser", "parse"]

_DESCRIPTION = """\
Show processes as they start programs and end: arguments, exit status or signal,
how long they lived, parent, user and container. Every one, however short."""

_EPILOG = """\
examples:
  purebpf exec                    the whole machine, until Ctrl-C
  purebpf exec --tree -p 185 60   what process 185 starts, for a minute
  purebpf exec -- make test       what a command starts
  purebpf exec --failed           what fails: execve, exit status, signals
  purebpf exec --summary 60       which programs, how often, and their CPU time
  purebpf exec --container web --format json -o out.json 60

A terminal shows as much of a line as fits; -v, a pipe or a file has all of it.
The last line, on standard error, says what was lost.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF; --failed also
CAP_DAC_READ_SEARCH, for tracefs. Linux 5.10 or later. docs/exec.md"""


class Columns(NamedTuple):
    """Lines or a table, and which columns text has besides the usual ones."""

    times: bool = False
    cgroups: bool = False
    summary: bool = False
    top: int | None = None


def parse(argv: Sequence[str]) -> tuple[ExecOptions, event_command.EventView, Columns]:
    """Return the tasks to follow and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    if parsed.top and not parsed.summary:
        command_parser.error("--top is an option of --summary")
    if parsed.summary and parsed.failed:
        command_parser.error("--summary counts successes and failures; leave out --failed")
    parsed.cpu_times = parsed.summary
    view = parser.pick(event_command.EventView, parsed)
    return parser.pick(ExecOptions, parsed), view, parser.pick(Columns, parsed)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf exec", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "follow")
    event_command.add_targets(command_parser, cpus="what happens on these CPUs")
    which = command_parser.add_argument_group("which events")
    which.add_argument(
        *("-x", "--failed"), action="store_true",
        help="only calls of execve that fail, and processes that end with another status than 0 "
        "or by a signal",
    )  # fmt: skip
    output = event_command.add_output(command_parser)
    output.add_argument(
        *("-s", "--summary"), action="store_true",
        help="a table by program at the end instead of lines: starts, failures, CPU time",
    )  # fmt: skip
    output.add_argument(
        *("-n", "--top"), metavar="N", type=positive_int, help="only the first N rows"
    )
    event_command.add_columns(output)
    parser.take_defaults(command_parser, ExecOptions, event_command.EventView, Columns)
    return command_parser
