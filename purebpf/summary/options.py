"""The command line of `python -m purebpf.summary`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int, seconds, user_id
from purebpf.summary.request import MAP_ENTRIES, MODES, Options

__all__ = ["SORTS", "View", "build_parser", "parse"]

SORTS = ("total", "calls", "errors", "min", "avg", "max", "stddev", "p50", "p95", "p99")
_DESCRIPTION = """\
Count and time system calls, in the kernel: how many, how many failed, how long
they took in total, at least, on average and at most. Exact, and cheap enough
for a machine that works."""

_EPILOG = """\
examples:
  python -m purebpf.summary 5               the whole machine, for 5 seconds
  python -m purebpf.summary -p 185 -i 1     process 185, a table every second
  python -m purebpf.summary -- make test    a command and its children
  python -m purebpf.summary --mode process -T 10 5
  python -m purebpf.summary --syscall read,write --hist 5
  python -m purebpf.summary -x --errno-summary 5
  python -m purebpf.summary --format json -o out.json 5

The loss line at the end, on standard error, says what the table does not
include: calls that were open at the start or are at the end, those that never
return, tables that were full.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root. Linux 5.10 or later. docs/summary.md"""


class View(NamedTuple):
    """How tables look, and where they go. `output` None is standard output."""

    format: str = "text"
    output: str | None = None
    top: int | None = None
    sort: str = "total"
    inflight: bool = False
    histogram: bool = False
    errno_summary: bool = False
    interval_s: float | None = None
    strict: bool = False

    @property
    def has_percentiles(self) -> bool:
        """Whether text shows percentiles: with a histogram, or where rows are sorted by one."""
        return self.histogram or self.sort in ("p50", "p95", "p99")


def parse(argv: Sequence[str]) -> tuple[Options, View]:
    """What to count, and how to show it; exits with status 2 when the options are wrong.

    JSON and CSV have everything that can be counted, and JSON what it cost.
    """
    found = parser.parse(build_parser(), argv, {"-p": "pids", "-t": "tids"})
    view = parser.pick(View, found)
    found.histogram = view.has_percentiles or view.format != "text"
    found.errno_summary = view.errno_summary or view.format != "text"
    found.cost = view.format == "json"
    return parser.pick(Options, found), view


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = parser.new("purebpf.summary", _DESCRIPTION, _EPILOG)
    parser.add_duration(made, "count")
    _add_targets(made.add_argument_group("whose calls"))
    _add_filters(made.add_argument_group("which calls"))
    _add_output(made.add_argument_group("output"))
    return made


def _add_targets(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--mode", choices=MODES, default="total", help="what has a table of its own")
    parser.add_targets(
        group,
        processes="these processes, and children that they start meanwhile",
        threads="these threads",
        cpus="calls that end on these CPUs",
    )
    group.add_argument(
        *("-u", "--uid"), metavar="USER", type=user_id, help="tasks of this user: name or number"
    )


def _add_filters(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("--syscall",), dest="calls", metavar="NAME", type=_calls, default=(),
        help="these calls: NAME[,NAME...]",
    )  # fmt: skip
    group.add_argument("-x", "--only-failed", action="store_true", help="calls that failed")
    group.add_argument(
        *("-e", "--errno"), metavar="ERRNO", type=_errno, help="calls that failed so: ENOENT"
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--errno-summary", action="store_true", help="errors by name, below the row")
    group.add_argument(
        *("--hist",), dest="histogram", action="store_true",
        help="percentiles, and a histogram of the durations",
    )  # fmt: skip
    group.add_argument(
        "--inflight", action="store_true", help="list calls that are open at the end"
    )
    group.add_argument(
        *("-T", "--top"), metavar="N", type=positive_int, help="the first N groups and rows only"
    )
    group.add_argument(
        "--sort", metavar="KEY", choices=SORTS, default="total", help=", ".join(SORTS)
    )
    group.add_argument(
        *("-i", "--interval"), dest="interval_s", metavar="SECONDS", type=seconds,
        help="a table every so often; each has only what ended in it",
    )  # fmt: skip
    group.add_argument("--format", choices=("text", "json", "csv"), default="text")
    parser.add_output(group)
    group.add_argument(
        *("--map-entries",), metavar="N", type=positive_int, default=MAP_ENTRIES,
        help="rows that the modes other than total have room for (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        *("--hook",), choices=("tp_btf", "raw_tp", "tracepoint"),
        help="how to attach (default: the first of these that the kernel has)",
    )  # fmt: skip


def _calls(text: str) -> tuple[str, ...]:
    from purebpf.summary.calls import call_list  # tables that --help need not read

    return call_list(text)


def _errno(text: str) -> int:
    from purebpf.summary.calls import errno_number

    return errno_number(text)
