"""The command line of `purebpf summary`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int, seconds
from purebpf.tools.summary.request import FAULTS, HISTOGRAMS, MAP_ENTRIES, MODES, SummaryOptions
from purebpf.tuples import NamedTuple

__all__ = ["SORTS", "View", "build_parser", "parse"]

SORTS = ("total", "calls", "errors", "min", "avg", "max", "stddev", "p50", "p95", "p99")
_DESCRIPTION = """\
Count and time system calls in the kernel: calls, errors, and total, minimum,
average and maximum duration. Exact, and cheap enough for a busy machine."""

_EPILOG = """\
examples:
  purebpf summary 5               the whole machine, for 5 seconds
  purebpf summary -p 185 -i 1     process 185, a table every second
  purebpf summary -- make test    a command and its children
  purebpf summary --mode process -T 10 5
  purebpf summary --syscall read,write --hist 5
  purebpf summary --faults all -v -p 185 5   page faults, too, and of what
  purebpf summary -x 5
  purebpf summary --format json -o out.json 5

The loss line at the end, on standard error, says what the table does not
include: calls in flight at the start or the end, calls that never return, calls
that a full map dropped.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. Linux 5.10 or later. docs/summary.md"""


class View(NamedTuple):
    """The layout of tables, and their output. `output` None is standard output."""

    format: str = "text"
    layout: str = ""
    output: str | None = None
    top: int | None = None
    sort: str = "total"
    inflight: bool = False
    histogram: bool = False
    errno_summary: bool = False
    interval_s: float | None = None
    strict: bool = False
    verbose: bool = False

    @property
    def has_percentiles(self) -> bool:
        """True if text shows percentiles: with a histogram, or where rows are sorted by one."""
        return self.histogram or self.sort in ("p50", "p95", "p99")


def parse(argv: Sequence[str]) -> tuple[SummaryOptions, View]:
    """Return the calls to count and the output options; exit with status 2 on a usage error.

    JSON and CSV have all counts, and JSON also their cost.
    """
    parsed = parser.parse(build_parser(), argv, {"-p": "pids", "-t": "tids"})
    if parsed.layout != "perf":  # a failure without its error says little
        parsed.errno_summary = parsed.errno_summary or parsed.only_failed
    view = parser.pick(View, parsed)
    parsed.histogram = view.has_percentiles or view.format != "text"
    parsed.errno_summary = view.errno_summary or view.format != "text"
    parsed.cost = view.format == "json"
    parsed.fault_places = bool(parsed.faults) and (view.verbose or view.format == "json")
    return parser.pick(SummaryOptions, parsed), view


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf summary", _DESCRIPTION, _EPILOG)
    parser.add_duration(command_parser, "count")
    _add_targets(command_parser.add_argument_group("targets"))
    _add_filters(command_parser.add_argument_group("which calls"))
    _add_faults(command_parser.add_argument_group("page faults"))
    _add_output(command_parser.add_argument_group("output"))
    parser.take_defaults(command_parser, SummaryOptions, View)
    return command_parser


def _add_targets(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--mode", choices=MODES, help="one table for each")
    parser.add_targets(
        group,
        threads="these threads",
        cpus="calls that end on these CPUs",
        user=("-u", "--uid"),
    )


def _add_filters(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("--syscall",), dest="calls", metavar="NAME", type=_calls,
        help="only these calls: NAME[,NAME...]",
    )  # fmt: skip
    group.add_argument(
        *("-x", "--failed", "--only-failed"), dest="only_failed", action="store_true",
        help="only calls that failed, and their errors by name",
    )  # fmt: skip
    group.add_argument(
        *("-e", "--errno"),
        metavar="ERRNO",
        type=_errno,
        help="only calls that failed with this errno, such as ENOENT",
    )


def _add_faults(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("-F", "--faults", "--pf"), choices=FAULTS,
        help="count page faults, too: major, minor or all; with -v by function and mapping",
    )  # fmt: skip


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--errno-summary", action="store_true", help="errors by name, below the row")
    group.add_argument(
        *("--hist",), dest="histogram", action="store_true",
        help="percentiles, and a histogram of the durations",
    )  # fmt: skip
    group.add_argument("--inflight", action="store_true", help="list calls in flight at the end")
    group.add_argument(
        *("-n", "--top", "-T"),
        metavar="N",
        type=positive_int,
        help="only the first N groups and rows",
    )
    group.add_argument("--sort", metavar="KEY", choices=SORTS, help=", ".join(SORTS))
    group.add_argument(
        *("-i", "--interval"), dest="interval_s", metavar="SECONDS", type=seconds,
        help="print a table at this interval, with what ended in it",
    )  # fmt: skip
    parser.add_format(group, ("text", "json", "csv"))
    group.add_argument(
        "--layout", choices=("perf",),
        help="of text: that of `perf trace -s`, in milliseconds, wider than 80 columns",
    )  # fmt: skip
    parser.add_output(group)
    group.add_argument(
        *("--map-entries",), metavar="N", type=positive_int,
        help="maximum number of rows, and of histograms, in the modes other than total (default: "
             f"{MAP_ENTRIES} rows, {HISTOGRAMS} histograms)",
    )  # fmt: skip
    group.add_argument(
        *("--hook",), choices=("tp_btf", "raw_tp", "tracepoint"),
        help="how to attach (default: the first that the kernel supports)",
    )  # fmt: skip


def _calls(text: str) -> tuple[str, ...]:
    from purebpf.tools.summary.calls import call_list  # tables that --help need not read

    return call_list(text)


def _errno(text: str) -> int:
    from purebpf.tools.summary.calls import errno_number

    return errno_number(text)
