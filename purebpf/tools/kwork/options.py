"""The command line of `purebpf kwork`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence

from purebpf.cli import event_command, parser
from purebpf.cli.arguments import cpu_list, positive_int, seconds
from purebpf.cli.event_command import EventView
from purebpf.tools.kwork.request import KINDS, KworkOptions
from purebpf.tuples import NamedTuple

__all__ = ["MODES", "SORTS", "KworkView", "build_parser", "parse"]

MODES = ("report", "latency", "top", "timehist")
SORTS = ("runtime", "max", "count", "delay", "maxdelay")
_DEFAULT_SORT = {"report": "runtime", "latency": "delay", "top": "runtime", "timehist": "runtime"}

_DESCRIPTION = """\
Show what the kernel does on its own: interrupts, softirqs, tasklets, work of
queues, timers, calls from other CPUs; how long each runs (report), how long it
waits from when it is asked for (latency), each second (top)."""

_EPILOG = """\
examples:
  purebpf kwork 5                   what ran, most time first
  purebpf kwork latency 5           what waited, longest waits first
  purebpf kwork top                 each second: CPUs, tasks, the kernel's work
  purebpf kwork --timehist 1        each run on a line
  purebpf kwork -k irq,softirq -A 5     each CPU
  purebpf kwork -k work --queued-by 5   with the stacks that queued the work
  purebpf kwork -n 'nvme*' --hist 5     with histograms
  purebpf kwork --format json -- make   as long as a command runs

Percentiles are at most a quarter off; counts and sums are exact. The loss line
at the end, on standard error, says what they do not include.

exit status: 0; 1 an error; 2 a wrong option; 3 something was lost, with
--strict; that of the command, with --.

Needs CAP_BPF and CAP_PERFMON, or root, and the kernel's BTF. Linux 5.10 or
later. docs/kwork.md"""


_LOOK_S = 0.1
"""Between two looks at the runs of `timehist`."""


class KworkView(NamedTuple):
    """Options of the text beyond `EventView`: so many rows, and their order."""

    mode: str = "report"
    sort: str = "runtime"
    histogram: bool = False
    most: int = 25


def parse(argv: Sequence[str]) -> tuple[KworkOptions, EventView, KworkView]:
    """Return the work to measure and the output options; exit with status 2 on a usage error."""
    mode = argv[0] if argv and argv[0] in MODES else ""
    parsed = parser.parse(build_parser(), argv[1:] if mode else argv, {})
    parsed.mode = mode or MODES[0]
    parsed.names = tuple(parsed.names)
    parsed.sort = parsed.sort or _DEFAULT_SORT[parsed.mode]
    if parsed.each_run:
        parsed.mode = "timehist"
    if parsed.mode == "timehist":
        parsed.each_run = True
        parsed.interval_s = _LOOK_S
    parsed.shares = parsed.mode == "top"
    if parsed.mode == "top" and parsed.interval_s is None:
        parsed.interval_s = 1.0
    return (
        parser.pick(KworkOptions, parsed),
        parser.pick(EventView, parsed),
        parser.pick(KworkView, parsed),
    )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new(
        "purebpf kwork",
        _DESCRIPTION,
        _EPILOG,
        usage="[duration] [-- command ...]\n"
        "       the first word may be report, latency, top or timehist",
    )
    parser.add_duration(command_parser, "measure")
    group = command_parser.add_argument_group("which work")
    group.add_argument(
        *("-k", "--kind"), dest="kinds", metavar="KIND,...", type=_kinds,
        help=", ".join(KINDS),
    )  # fmt: skip
    group.add_argument(
        *("-n", "--name"), dest="names", metavar="PATTERN", action="append", default=[],
        help="only handlers and functions of this name; * and ? as in the shell",
    )  # fmt: skip
    group.add_argument(
        *("-C", "--cpu"), dest="cpus", metavar="CPU", type=cpu_list,
        help="what runs on these CPUs: 0-3,8",
    )  # fmt: skip
    _add_output(event_command.add_output(command_parser, ("text", "json", "csv")))
    parser.take_defaults(command_parser, KworkOptions, EventView, KworkView)
    command_parser.set_defaults(sort="")  # what is measured decides
    return command_parser


def _add_output(output: argparse._ArgumentGroup) -> None:
    output.add_argument(
        "-A", "--per-cpu", dest="by_cpu", action="store_true", help="each CPU alone"
    )
    output.add_argument(
        *("--queued-by",), dest="stacks", action="store_true",
        help="a row for each stack that queued the work",
    )  # fmt: skip
    output.add_argument(
        "--hist", dest="histogram", action="store_true", help="a histogram below each row"
    )
    output.add_argument(
        *("--timehist",), dest="each_run", action="store_true",
        help="each run on a line: when, where, how long it ran and waited",
    )  # fmt: skip
    output.add_argument(
        *("-s", "--sort"), metavar="KEY", choices=SORTS,
        help=f"{', '.join(SORTS)}; by default by runtime, or, of latency, by delay",
    )  # fmt: skip
    output.add_argument(
        *("--top", "-E", "--entries"), dest="most", metavar="N", type=positive_int,
        help="the first N rows of text (default %(default)s)",
    )  # fmt: skip
    output.add_argument(
        *("-i", "--interval"), dest="interval_s", metavar="SECONDS", type=seconds,
        help="print a table at this interval, with what ended in it (top: 1)",
    )  # fmt: skip
    output.add_argument(
        *("--map-entries",), dest="rows", metavar="N", type=positive_int,
        help="maximum number of rows of each CPU (default %(default)s)",
    )  # fmt: skip
    parser.add_old_name(output, "--rows", "--map-entries", dest="rows", type=positive_int)


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    for kind in kinds:
        if kind not in KINDS:
            raise ArgumentTypeError(f"unknown kind {kind!r} (known: {', '.join(KINDS)})")
    return kinds
