"""The common parts of runqlat and cpudist: they measure different spans and print them alike."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command, parser
from purebpf.cli.arguments import positive_int, seconds
from purebpf.cli.output import Output
from purebpf.measure.options import TargetOptions

if TYPE_CHECKING:
    from purebpf.measure.latency import Interval
    from purebpf.results.shape.distribution import Distribution

__all__ = ["USAGE", "SpanOptions", "add_options", "parse", "run"]

_ROUNDING = 1e-9
USAGE = "[interval [count]] [-- command...]"


class SpanOptions(TargetOptions):
    """A frozen request. Empty tuples and None mean: no restriction.

    `by` is the owner of each histogram: "pid", "tid", "pidns", "cgroup", or "" for all tasks
    together. `interval_s` None: one result, at Ctrl-C or when `command` ends.
    """

    by: str = ""
    milliseconds: bool = False
    timestamp: bool = False
    totals: bool = False
    include_idle: bool = False
    off_cpu: bool = False
    groups: int = 1024
    interval_s: float | None = None
    times: int | None = None
    command: tuple[str, ...] = ()
    format: str = "text"
    output: str | None = None
    strict: bool = False
    verbose: bool = False

    @property
    def duration_s(self) -> float | None:
        """Seconds until the last table; None where something else ends the run."""
        if self.interval_s is None or self.times is None:
            return None
        return self.interval_s * self.times

    @property
    def unit(self) -> tuple[str, int]:
        """Its name, and how many nanoseconds it has."""
        return ("msecs", 1_000_000) if self.milliseconds else ("usecs", 1000)


def add_options(command_parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the common options; return the group of targets, for more of them."""
    command_parser.add_argument(
        *("interval_s",), metavar="interval", nargs="?", type=seconds,
        help="seconds between two tables (default: one table, at Ctrl-C)",
    )  # fmt: skip
    command_parser.add_argument(
        *("times",), metavar="count", nargs="?", type=positive_int, help="number of tables"
    )
    command_parser.add_argument(
        *("--duration",), dest="whole_s", metavar="TIME", type=seconds,
        help="end after this time: one table, or one for each interval",
    )  # fmt: skip
    whose = command_parser.add_argument_group("targets")
    parser.add_targets(whose, cpus="what ends on these CPUs")
    grouping = command_parser.add_argument_group(
        "one histogram for each"
    ).add_mutually_exclusive_group()
    for flags, by, what in (
        (("-P", "--pids"), "pid", "process"),
        (("-L", "--tids"), "tid", "thread"),
        (("--pidnss",), "pidns", "PID namespace"),
        (("--cgroups",), "cgroup", "cgroup"),
    ):
        grouping.add_argument(*flags, dest="by", action="store_const", const=by, help=what)
    _add_output(command_parser.add_argument_group("output"))
    return whose


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-m", "--milliseconds", action="store_true", help="milliseconds instead of microseconds"
    )
    group.add_argument(
        "-T", "--timestamp", action="store_true", help="print the time above each table"
    )
    group.add_argument(
        *("-e", "--extension"),
        dest="totals",
        action="store_true",
        help="also print average and total",
    )
    parser.add_format(group)
    group.add_argument(
        *("--groups",), metavar="N", type=positive_int,
        help="maximum number of histograms (default %(default)s)",
    )  # fmt: skip
    parser.add_output(group)


def parse(command_parser: argparse.ArgumentParser, argv: Sequence[str]) -> SpanOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    parsed = parser.parse(command_parser, argv, {"-p": "pids", "-t": "tids"})
    whole_s = vars(parsed).pop("whole_s")
    if whole_s is not None:
        parsed.interval_s = interval_s = parsed.interval_s or whole_s
        if parsed.times is not None:
            command_parser.error("argument --duration: excludes the number of tables")
        parsed.times = round(whole_s / interval_s)
        if abs(parsed.times * interval_s - whole_s) > _ROUNDING * whole_s:
            command_parser.error("argument --duration: it must be a multiple of the interval")
    return SpanOptions(**vars(parsed))


def run(measure: str, title: str, options: SpanOptions) -> int:
    """Measure, print, and return the exit status.

    Args:
        measure: one of `purebpf.observe.instruments.latency_histograms.MEASURES`.
        title: the line that a terminal shows first.
        options: the target of the spans, and how to print them.
    """
    from purebpf.cli.countdown import counting_down
    from purebpf.cli.loss import explain_table
    from purebpf.measure import run as pipeline
    from purebpf.measure.cpu_limits import CpuLimitWatch
    from purebpf.measure.latency import Latency, Request
    from purebpf.measure.requests import narrow

    request = narrow(Request, options, measure=measure, unit_ns=options.unit[1])
    make = partial(Latency, request)
    limits = CpuLimitWatch(options.pids)
    with (
        Output(options.output) as output,
        pipeline.prepare(make, options.command, output.reader) as (session, ends),
    ):
        command.say(title)
        last = pipeline.run(
            session,
            ends,
            lambda: output.write(_render(session.interval(), options, limits.sentences())),
            watching=counting_down(options.duration_s, options.command),
        )
        status = ends.status()
        output.write(_render(last, options, limits.sentences()))
        explain_table(last.loss, verbose=options.verbose)
    if options.strict and last.loss.any:
        return command.LOSS
    return status


def _render(interval: Interval, options: SpanOptions, notes: Sequence[str]) -> Iterable[str]:
    if options.format == "json":
        import json

        from purebpf.results.model.json_values import json_object
        from purebpf.results.shape.distribution import json_document

        about = {"elapsed_s": round(interval.elapsed_s, 3)}
        document = json_document(interval.distributions, options.unit[1], interval.loss, about)
        return [json.dumps(json_object("distribution", document)) + "\n"]
    return _text(interval.distributions, options, notes)


def _text(
    distributions: Sequence[Distribution], options: SpanOptions, notes: Sequence[str]
) -> Iterator[str]:
    from purebpf.results.shape.distribution import text

    unit, unit_ns = options.unit
    yield "\n"
    yield from (f"{note}\n" for note in notes)
    if options.timestamp:
        yield time.strftime("%H:%M:%S\n")
    yield from text(distributions, unit, unit_ns, totals=options.totals)
