"""The command line of `purebpf open`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import positive_int
from purebpf.tools.open.request import OpenOptions
from purebpf.tuples import NamedTuple

__all__ = ["Shape", "build_parser", "parse"]

_DESCRIPTION = """\
Show files as they are opened, or fail to be: path, flags, errno, latency, and
by which process. Or count them by path or process, failures first."""

_EPILOG = """\
examples:
  purebpf open                    the whole machine, until Ctrl-C
  purebpf open --failed 10        what is not there, or not allowed
  purebpf open -e EACCES          only calls that fail with EACCES
  purebpf open --tree -p 185      process 185, and its children
  purebpf open --summary 10       the paths, most failures first
  purebpf open --summary --by process 10
  purebpf open --format json -o out.json -- make test

Relative paths are shown behind the directory that they are relative to. A
terminal shows as much of a line as fits; -v, a pipe or a file has all of it.
The last line, on standard error, says what was lost.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF, CAP_PERFMON and CAP_DAC_READ_SEARCH (for tracefs), or root, and
the kernel's BTF. Linux 5.10 or later. docs/open.md"""


class Shape(NamedTuple):
    """Lines or a table, and which columns lines have besides the usual ones."""

    times: bool = False
    cgroups: bool = False
    summary: bool = False
    by: str = "path"
    top: int | None = None


def parse(argv: Sequence[str]) -> tuple[OpenOptions, event_command.EventView, Shape]:
    """Return the calls to follow and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    if not parsed.summary and (parsed.by or parsed.top):
        command_parser.error("--by and --top are options of --summary")
    parsed.by = parsed.by or "path"
    view = parser.pick(event_command.EventView, parsed)
    return parser.pick(OpenOptions, parsed), view, parser.pick(Shape, parsed)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf open", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "follow")
    event_command.add_targets(command_parser, cpus="calls on these CPUs")
    which = command_parser.add_argument_group("which calls")
    which.add_argument("-x", "--failed", action="store_true", help="only calls that fail")
    which.add_argument(
        *("-e", "--errno"), metavar="ERRNO", type=event_command.errno_number,
        help="only calls that fail with this errno, such as ENOENT",
    )  # fmt: skip
    output = event_command.add_output(command_parser)
    output.add_argument(
        *("-s", "--summary"), action="store_true", help="a table at the end instead of lines"
    )
    output.add_argument(
        "--by", choices=("path", "process"), help="what the table has a row for (default: path)"
    )
    output.add_argument(
        *("-n", "--top"), metavar="N", type=positive_int, help="only the first N rows"
    )
    event_command.add_columns(output)
    parser.take_defaults(command_parser, OpenOptions, event_command.EventView, Shape)
    command_parser.set_defaults(by=None)  # needs --summary
    return command_parser
