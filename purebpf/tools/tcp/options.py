"""The command line of `purebpf tcp`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import positive_int
from purebpf.cli.event_command import EventView
from purebpf.tools.tcp.request import EVENTS, TcpOptions
from purebpf.tuples import NamedTuple

__all__ = ["Shape", "build_parser", "parse"]

_DESCRIPTION = """\
Show TCP connections as they are made, accepted and closed: by which process,
how long it took, bytes each way, segments sent again, and why one failed."""

_EPILOG = """\
examples:
  purebpf tcp                   the whole machine, until Ctrl-C
  purebpf tcp --summary 60      by peer and port
  purebpf tcp --dns             remote addresses by name, where DNS is plain
  purebpf tcp -p 185 --tree     process 185 and its children
  purebpf tcp --events close 10   lifetimes and bytes only
  purebpf tcp --events fail,retransmit
  purebpf tcp --events state --port 5432
  purebpf tcp --format json -o tcp.jsonl 60
  purebpf tcp -- curl -s example.com   a command and its children

Events: connect (made by us), accept, close, fail (a connect that failed),
retransmit (a segment is sent again), synack (the same for the answer to a SYN),
state (each change of state), dns (what a name server says).

The loss line at the end, on standard error, says what the lines do not include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.10 or
later. docs/tcp.md"""

_LAST_PORT = 65535


class Shape(NamedTuple):
    """Lines, or a table with its first `top` rows."""

    summary: bool = False
    top: int | None = None


def parse(argv: Sequence[str]) -> tuple[TcpOptions, EventView, Shape]:
    """Return the connections and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    if parsed.top and not parsed.summary:
        command_parser.error("--top is an option of --summary")
    if parsed.dns and "dns" not in parsed.events:
        parsed.events = (*parsed.events, "dns")
    parsed.dns = "dns" in parsed.events
    view = parser.pick(EventView, parsed)
    return parser.pick(TcpOptions, parsed), view, parser.pick(Shape, parsed)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf tcp", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "trace")
    event_command.add_targets(command_parser, cpus="events that happen on these CPUs")
    group = command_parser.add_argument_group("which events")
    group.add_argument(
        *("--events",), metavar="NAME,..", type=_events,
        help="only these (default: all but state and dns)",
    )  # fmt: skip
    group.add_argument(
        "--dns", action="store_true",
        help="also answers of name servers; remote addresses by name",
    )  # fmt: skip
    group.add_argument(
        *("--port",), metavar="PORT", type=_port, help="connections with this port on either side"
    )
    output = event_command.add_output(command_parser)
    output.add_argument(
        *("-s", "--summary"), action="store_true",
        help="a table by peer and port at the end instead of lines: connections, failures, time, "
        "bytes",
    )  # fmt: skip
    output.add_argument(
        *("-n", "--top"), metavar="N", type=positive_int, help="only the first N rows"
    )
    output.add_argument(
        *("--connections",), metavar="N", type=positive_int,
        help="maximum number of open connections to follow (default %(default)s)",
    )  # fmt: skip
    parser.take_defaults(command_parser, TcpOptions, EventView, Shape)
    return command_parser


def _events(text: str) -> tuple[str, ...]:
    events = tuple(dict.fromkeys(text.split(",")))
    for event in events:
        if event not in EVENTS:
            raise ArgumentTypeError(f"unknown event {event!r}; known: {', '.join(EVENTS)}")
    return events


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _LAST_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port (expected 1 to {_LAST_PORT})")
    return int(text)
