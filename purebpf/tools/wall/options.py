"""The command line of `purebpf wall`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser, time_options
from purebpf.cli.destination import ResultOptions, destinations
from purebpf.tools.wall.request import WallOptions

__all__ = ["build_parser", "parse"]

_DESCRIPTION = """\
Show where threads spend wall-clock time: on a CPU, blocked, or in a run queue.
Waits are measured at every context switch. Time on a CPU is sampled, and scaled
to the measured run time, so that a thread's parts add up."""

_EPILOG = """\
examples:
  purebpf wall -p 185 5           process 185; --tree: and children
  purebpf wall -t 2040,2041 5     two threads
  purebpf wall -f -p 185 5 > out  folded stacks, for flame graphs
  purebpf wall -o out.html -p 185 5   a flame graph; docs/formats.md
  purebpf wall --serve -p 185     a live one in a browser
  purebpf wall -- make test       a command and its children

The loss line at the end, on standard error, says what the numbers do not
include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. Linux 5.10 or later, with BTF.
docs/wall.md"""


def parse(argv: Sequence[str]) -> tuple[WallOptions, ResultOptions]:
    """Return the threads to trace and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    parsed.python_lines = parsed.lines
    parsed.to = destinations(command_parser, parsed.formats, parsed.outputs)
    return parser.pick(WallOptions, parsed), parser.pick(ResultOptions, parsed, is_partial=True)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf wall", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "trace")
    time_options.add_whose(
        command_parser.add_argument_group("targets"),
        cpus="threads that run on, or leave, these CPUs",
    )
    _add_output(command_parser.add_argument_group("output"))
    parser.take_defaults(command_parser, WallOptions)
    return command_parser


def _add_output(group: argparse._ArgumentGroup) -> None:
    parser.add_frequency(group, "samples a second on each CPU (default %(default)s)")
    parser.add_stack_kinds(group)
    time_options.add_output(group, "-T", details="-d and -s", what="places, stacks and threads")
