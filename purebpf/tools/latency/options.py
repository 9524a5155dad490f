"""The command line of `purebpf latency`."""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import milliseconds, positive_int, seconds
from purebpf.cli.event_command import EventView
from purebpf.cli.listing import Names, add_list
from purebpf.formats import of_path
from purebpf.tools.latency.request import MOST_ARGUMENTS, LatencyOptions, parse_grouping
from purebpf.tuples import NamedTuple

__all__ = ["LatencyView", "build_parser", "parse"]

_DESCRIPTION = """\
Show how long functions of the kernel, of programs and of libraries take, or
what is between two events: histograms, percentiles, slow calls as they end."""

_EPILOG = """\
examples:
  purebpf latency vfs_read 10               a function of the kernel, for 10 s
  purebpf latency libc.so.6:malloc -p 185   one of a library, in process 185
  purebpf latency './srv:db::*' -- ./srv    C++ functions of a command
  purebpf latency -e irq:irq_handler_entry,irq_handler_exit 10
  purebpf latency -e ./srv:srv:start,done   static probes (USDT)
  purebpf latency vfs_fsync --slower 5ms --stacks   calls of 5 ms and more
  purebpf latency 'vfs_*' --count -i 1      count only, each second
  purebpf latency ./srv:parse ./srv:run --time -p 185   self time, as a tree
  purebpf latency vfs_read --by ret:int     by what it returns
  purebpf latency vfs_read -o x.html 60     a heat map over time

Percentiles are at most a quarter off, min and max are exact. A traced call
costs a user function some microseconds more; see docs/latency.md.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, for functions of programs CAP_SYS_ADMIN on some
kernels; or root. The kernel's BTF, Linux 5.10 or later, x86-64."""

FORMATS = ("text", "json", "csv", "folded", "html")
_COLUMN_S = 1.0
"""Of a heat map."""
_UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000}


class LatencyView(NamedTuple):
    """The layout of tables. `fine`: histograms with a line for each bucket."""

    fine: bool = False
    histogram: bool = False
    most: int = 20


def parse(argv: Sequence[str]) -> tuple[LatencyOptions, EventView, LatencyView]:
    """Return the calls to time and the output options; exit with status 2 on a usage error."""
    command_parser = build_parser()
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"}, intermixed=True)
    parsed.functions, duration_s = _split(command_parser, parsed.words)
    if duration_s is not None:
        if parsed.duration_s is not None:
            command_parser.error("argument --duration: the duration is given twice")
        parsed.duration_s = duration_s
    parsed.pairs = tuple(parsed.pairs)
    parsed.unit_ns = _UNITS[parsed.unit]
    parsed.linear, parsed.fine = parsed.buckets
    parsed.format = parsed.format or _format_of(parsed.output)
    if parsed.format == "html":
        parsed.interval_s = parsed.interval_s or _COLUMN_S
    _check(command_parser, parsed)
    return (
        parser.pick(LatencyOptions, parsed),
        parser.pick(EventView, parsed),
        parser.pick(LatencyView, parsed),
    )


def _format_of(path: str | None) -> str:
    """Return the format that the suffix of a file name stands for."""
    if path is None:
        return "text"
    name = of_path(path)
    return name if name in FORMATS else "text"


def _split(
    command_parser: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[tuple[str, ...], float | None]:
    """The functions, and the duration, which is the last word if that is a number or a time."""
    if not words or not re.fullmatch(r"\d*\.?\d+(us|ms|[smh])?", words[-1]):
        return tuple(words), None
    try:
        return tuple(words[:-1]), seconds(words[-1])
    except ArgumentTypeError as error:
        command_parser.error(f"argument duration: {error}")


def _check(command_parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    if bool(parsed.functions) == bool(parsed.pairs):
        command_parser.error(
            "functions to time required, or pairs of events (-e BEGIN,END), not both"
        )
    if parsed.only_count and (parsed.time or parsed.slower_ms is not None):
        command_parser.error("--count does not time calls: --time and --slower exclude it")
    if parsed.only_count and parsed.by.startswith("ret"):
        command_parser.error("--count does not see results: --by ret excludes it")
    if parsed.pairs and (parsed.time or parsed.by.startswith("ret")):
        command_parser.error("pairs of events (-e) have no results or call tree")
    if parsed.by.startswith("arg") and any(not _is_static(pair) for pair in parsed.pairs):
        command_parser.error(
            "tracepoints (-e) have no arguments: --by arg is for functions and probes"
        )
    if parsed.functions and parse_grouping(parsed.by).argument > MOST_ARGUMENTS:
        command_parser.error(f"arguments of functions are known to arg{MOST_ARGUMENTS}")
    if parsed.format == "folded" and not parsed.time:
        command_parser.error("--format folded is of a call tree: add --time")
    if parsed.only_count and parsed.format == "html":
        command_parser.error("--count has no times to draw: --format html excludes it")
    if parsed.stacks and parsed.slower_ms is None:
        command_parser.error("--stacks are those of slow calls: add --slower TIME")


def _find_functions(pattern: str) -> Names:
    from purebpf.tools.latency.listing import list_functions

    return list_functions(pattern)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    usage = "function... [duration] [-- ...]"
    command_parser = parser.new("purebpf latency", _DESCRIPTION, _EPILOG, usage=usage)
    command_parser.add_argument(
        *("words",), metavar="function", nargs="*",
        help="NAME of the kernel, FILE:NAME, or patterns; a number of seconds, 500ms or 2m is "
        "the duration",
    )  # fmt: skip
    command_parser.set_defaults(duration_s=None)
    parser.add_duration_option(command_parser, "the duration, as an option")
    event_command.add_targets(command_parser, cpus="calls that begin on these CPUs")
    _add_calls(command_parser.add_argument_group("which calls"))
    output = event_command.add_output(command_parser, formats=FORMATS)
    _add_tables(output)
    parser.take_defaults(command_parser, LatencyOptions, EventView, LatencyView)
    command_parser.set_defaults(format=None)  # as the name of the file says
    return command_parser


def _add_calls(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("-e", "--event"), dest="pairs", metavar="BEGIN,END", action="append", default=[],
        type=_pair, help="a pair of tracepoints CATEGORY:NAME, or of probes FILE:PROVIDER:NAME",
    )  # fmt: skip
    add_list(group, "functions of the kernel (FILE:PATTERN: of a file)", _find_functions)
    group.add_argument(
        "--slower", dest="slower_ms", metavar="TIME", type=milliseconds,
        help="also show each call that took so long: 500us, 10ms (0: all)",
    )  # fmt: skip
    group.add_argument("--stacks", action="store_true", help="their callers, with --slower")
    parser.add_call_graph(group)
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        *("--count",), dest="only_count", action="store_true",
        help="count calls; do not time them",
    )  # fmt: skip
    kind.add_argument(
        "--time", action="store_true", help="also a tree of the functions, with their own time"
    )


def _add_tables(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        *("-i", "--interval"), dest="interval_s", metavar="SECONDS", type=seconds,
        help="print a table at this interval",
    )  # fmt: skip
    group.add_argument(
        "--by", metavar="KEY", type=_grouping,
        help="a row for each process, thread, comm, cpu, cgroup, ret or arg1 to arg6 "
        "(ret:int and arg1:uint: 32 bits); of probes arg1 to arg12",
    )  # fmt: skip
    group.add_argument(
        "--unit", choices=tuple(_UNITS), default="us", help="of histograms (default: us)"
    )
    group.add_argument(
        "--buckets", metavar="KIND", type=_buckets, default=(0, False),
        help="log2, hdr (four to each power of two), or N units each (default: log2)",
    )  # fmt: skip
    group.add_argument(
        "--hist", dest="histogram", action="store_true",
        help="a histogram below each row (default: where there is one row)",
    )  # fmt: skip
    group.add_argument(
        *("-n", "--top", "-E", "--entries"), dest="most", metavar="N", type=positive_int,
        help="the N rows with most time (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        *("--map-entries",), dest="rows", metavar="N", type=positive_int,
        help="maximum number of rows, and of paths in the tree (default %(default)s)",
    )  # fmt: skip
    parser.add_old_name(group, "--rows", "--map-entries", dest="rows", type=positive_int)


def _pair(text: str) -> str:
    from purebpf.tools.latency.functions import parse_pair

    try:
        parse_pair(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def _is_static(pair: str) -> bool:
    return pair.partition(",")[0].count(":") > 1


def _grouping(text: str) -> str:
    try:
        parse_grouping(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def _buckets(text: str) -> tuple[int, bool]:
    """Units of each bucket, 0 for powers of two, and whether those have four."""
    if text in ("log2", "hdr"):
        return 0, text == "hdr"
    return positive_int(text), False
