"""The command line of `purebpf io`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import milliseconds, positive_int
from purebpf.cli.event_command import EventView
from purebpf.tools.io.request import GROUPINGS, IoOptions
from purebpf.tuples import NamedTuple

__all__ = ["IoView", "build_parser", "parse"]

_DESCRIPTION = """\
Show how long requests to block devices take: percentiles by device, process or
file, time in the queue apart, and slow requests one by one as they end."""

_EPILOG = """\
examples:
  purebpf io 10                 each device: counts, percentiles
  purebpf io --hist 10          with histograms
  purebpf io --slower 20ms      also each request of 20 ms or more
  purebpf io --by file 10       which files
  purebpf io --by process --device vda 10
  purebpf io --slower 0 -p 185 --tree   every request of a process
  purebpf io --failed           requests that failed
  purebpf io --format json -o io.jsonl 60
  purebpf io -- make test       a command and its children

Percentiles are at most a quarter off; counts, bytes and sums are exact. The
loss line at the end, on standard error, says what they do not include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.10 or
later. docs/io.md"""


class IoView(NamedTuple):
    """Options of the text beyond `EventView`."""

    histogram: bool = False
    top: int | None = None


def parse(argv: Sequence[str]) -> tuple[IoOptions, EventView, IoView]:
    """Return the requests and the output options; exit with status 2 on a usage error."""
    parsed = parser.parse(build_parser(), argv, {"-p": "pids", "-t": "tids"})
    if parsed.only_failed and parsed.slower_ms is None:
        parsed.slower_ms = 0.0
    return (
        parser.pick(IoOptions, parsed),
        parser.pick(EventView, parsed),
        parser.pick(IoView, parsed),
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf io", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "measure")
    event_command.add_targets(command_parser, cpus="requests that end on these CPUs")
    group = command_parser.add_argument_group("which requests")
    group.add_argument(
        *("--slower",), dest="slower_ms", metavar="TIME", type=milliseconds,
        help="also show each request that took so long since it was made: 500us, 10ms "
        "(0: all)",
    )  # fmt: skip
    group.add_argument("--device", metavar="NAME", help="only this disk: vda, or MAJOR:MINOR")
    group.add_argument(
        *("-x", "--failed"), dest="only_failed", action="store_true",
        help="only requests that failed, each of them",
    )  # fmt: skip
    output = event_command.add_output(command_parser)
    output.add_argument("--by", choices=GROUPINGS, help="a row for each")
    output.add_argument(
        "--hist", dest="histogram", action="store_true", help="a histogram below each row"
    )
    output.add_argument(
        *("-n", "--top"), metavar="N", type=positive_int, help="only the first N rows"
    )
    output.add_argument(
        *("--map-entries",), dest="rows", metavar="N", type=positive_int,
        help="maximum number of rows (default %(default)s)",
    )  # fmt: skip
    parser.add_old_name(output, "--rows", "--map-entries", dest="rows", type=positive_int)
    parser.take_defaults(command_parser, IoOptions, EventView, IoView)
    return command_parser
