"""The command line of `purebpf trace`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import milliseconds, positive_int
from purebpf.cli.listing import Names, add_list
from purebpf.tools.trace.request import TraceOptions
from purebpf.tuples import NamedTuple

__all__ = ["Shape", "build_parser", "parse"]

_DESCRIPTION = """\
Show system calls as they happen, as strace does, without stopping a process:
arguments both ways, results, how long each took, signals and ends."""

_EPILOG = """\
examples:
  purebpf trace -- ls                    a command and its children
  purebpf trace -p 185 -e %file          calls of process 185 that take a path
  purebpf trace -e 'open*,!openat2' 10   names and patterns, of the machine
  purebpf trace --failure -e %net        calls of sockets that fail
  purebpf trace -e 'sched:*,openat' 10   tracepoints by group:name, and calls
  purebpf trace --least 100ms -p 185      calls that take 100 ms or longer
  purebpf trace --call-graph auto -e fsync -p 185   and where from
  purebpf trace --summary -- ls          the calls, then a table of them
  purebpf trace --format strace -o out -- make
  purebpf trace --tree -p 185 --max-events 1000

A terminal shows as much of a line as fits; -v, a pipe or a file has all of it.
Calls that the reader is too slow for are counted, and said where they are
missing. The last line, on standard error, says what was lost.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, the kernel's BTF, and ring buffers
(Linux 5.8). docs/trace.md"""

_LONGEST = 1024


class Shape(NamedTuple):
    """The columns of lines besides the usual ones, and the choice of a table behind them."""

    times: bool = False
    cgroups: bool = False
    summary: bool = False


def parse(argv: Sequence[str]) -> tuple[TraceOptions, event_command.EventView, Shape]:
    """Return the events to trace and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    parsed.events = tuple(parsed.events or ())
    _check_events(command_parser, parsed.events)
    view = parser.pick(event_command.EventView, parsed)
    return parser.pick(TraceOptions, parsed), view, parser.pick(Shape, parsed)


def _check_events(command_parser: argparse.ArgumentParser, events: tuple[str, ...]) -> None:
    if not events:
        return
    import os

    from purebpf.abi import syscalls
    from purebpf.tools.trace.selection import UnknownCallError, select, split

    names, points = split(events)
    abis = syscalls.machine(os.uname().machine).abis
    try:
        select(names, {name for abi in abis for name in syscalls.table(abi).values()})
        if points:
            _check_tracepoints(points)
    except UnknownCallError as error:
        command_parser.error(f"argument -e: {error}")


def _check_tracepoints(words: tuple[str, ...]) -> None:
    from purebpf.errors import KernelError, NotSupportedError
    from purebpf.syscall import tracefs
    from purebpf.tools.trace.tracepoint_programs import find

    with suppress(KernelError, NotSupportedError):  # the session says it, with what helps
        find(words, tracefs.tracepoint_names())


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf trace", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "trace")
    event_command.add_targets(command_parser, cpus="calls that begin on these CPUs")
    which = command_parser.add_argument_group("which calls")
    which.add_argument(
        *("-e", "--event"), dest="events", metavar="CALLS", action="append",
        help="names, patterns, %%file %%net %%process %%desc %%memory %%signal; GROUP:TRACEPOINT; "
        "! for all but",
    )  # fmt: skip
    add_list(which, "calls and tracepoints", _find_calls)
    which.add_argument(
        *("-x", "--failed", "--failure"), dest="failed", action="store_true",
        help="only those that fail",
    )  # fmt: skip
    which.add_argument(
        "--least", dest="least_ms", metavar="TIME", type=milliseconds,
        help="only those that take so long: 500us, 10ms",
    )  # fmt: skip
    which.add_argument(
        "--max-events", dest="most_events", metavar="N", type=positive_int,
        help="end after N calls",
    )  # fmt: skip
    output = event_command.add_output(command_parser, formats=("text", "json", "strace"))
    output.add_argument(
        *("-s", "--string-size"), metavar="N", type=_string_size,
        help="bytes that are shown of strings and buffers (default: 32)",
    )  # fmt: skip
    output.add_argument(
        *("-y", "--paths"), action="store_true", help="what descriptors are open on: 3</etc/hosts>"
    )
    output.add_argument(
        *("-S", "--summary", "--with-summary"), dest="summary", action="store_true",
        help="also a table of the calls at the end, from the same measurement",
    )  # fmt: skip
    event_command.add_columns(output)
    output.add_argument(
        "--call-graph", choices=("auto", "tables", "deep", "copy", "fp"),
        help="the stack of each call or tracepoint: walked by unwind tables, in deep ones from "
        "copies, all copied, or by frame pointers; auto: tables, or fp where this kernel or CPU "
        "cannot",
    )  # fmt: skip
    parser.take_defaults(command_parser, TraceOptions, event_command.EventView, Shape)
    return command_parser


def _find_calls(pattern: str) -> Names:
    from purebpf.tools.trace.listing import list_calls

    return list_calls(pattern)


def _string_size(text: str) -> int:
    value = positive_int(text)
    if value > _LONGEST:
        raise argparse.ArgumentTypeError(f"at most {_LONGEST}, not {value}")
    return value
