"""What runqlat and cpudist share: they measure different spans and print them alike."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from purebpf.cli import command, parser
from purebpf.cli.arguments import positive_int, seconds
from purebpf.cli.output import Output

if TYPE_CHECKING:
    from purebpf.kernel.instruments.latency_histograms import Spans
    from purebpf.measure.child import Child
    from purebpf.measure.stop import Stop
    from purebpf.results import Loss
    from purebpf.results.shape.distribution import Distribution

__all__ = ["USAGE", "SpanOptions", "add_options", "losses", "parse", "run"]

USAGE = "[interval [count]] [-- command ...]"
_SUBJECT = frozenset({"open_at_start", "in_flight"})
"""Causes that belong to any run: the histograms are complete all the same."""


class SpanOptions(NamedTuple):
    """A frozen request. Empty tuples and None mean: no restriction.

    `by` is what has a histogram of its own: "pid", "tid", "pidns", "cgroup", or "" for all tasks
    together. `interval_s` None: one result, at Ctrl-C or when `command` ends.
    """

    by: str = ""
    milliseconds: bool = False
    timestamp: bool = False
    totals: bool = False
    include_idle: bool = False
    off_cpu: bool = False
    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    cgroup: str | None = None
    groups: int = 1024
    interval_s: float | None = None
    times: int | None = None
    command: tuple[str, ...] = ()
    format: str = "text"
    output: str | None = None
    strict: bool = False

    @property
    def unit(self) -> tuple[str, int]:
        """Its name, and how many nanoseconds it has."""
        return ("msecs", 1_000_000) if self.milliseconds else ("usecs", 1000)


def add_options(made: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what both commands know; returns the group of what to measure, for more of it."""
    made.add_argument(
        *("interval_s",), metavar="interval", nargs="?", type=seconds,
        help="seconds between two results (default: one result, at Ctrl-C)",
    )  # fmt: skip
    made.add_argument(
        *("times",), metavar="count", nargs="?", type=positive_int, help="how many results"
    )
    whose = made.add_argument_group("whose")
    parser.add_targets(
        whose,
        processes="these processes, and children that they start meanwhile",
        cpus="what ends on these CPUs",
    )
    grouping = made.add_argument_group("a histogram for each").add_mutually_exclusive_group()
    for flags, by, what in (
        (("-P", "--pids"), "pid", "process"),
        (("-L", "--tids"), "tid", "thread"),
        (("--pidnss",), "pidns", "pid namespace"),
        (("--cgroups",), "cgroup", "cgroup"),
    ):
        grouping.add_argument(*flags, dest="by", action="store_const", const=by, help=what)
    made.set_defaults(by="")
    _add_output(made.add_argument_group("output"))
    return whose


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-m", "--milliseconds", action="store_true", help="not microseconds")
    group.add_argument("-T", "--timestamp", action="store_true", help="the time above each result")
    group.add_argument(
        *("-e", "--extension"), dest="totals", action="store_true", help="average and total, too"
    )
    group.add_argument("--format", choices=("text", "json"), default="text")
    group.add_argument(
        *("--groups",), metavar="N", type=positive_int, default=1024,
        help="histograms that there is room for (default %(default)s)",
    )  # fmt: skip
    parser.add_output(group)


def parse(made: argparse.ArgumentParser, argv: Sequence[str]) -> SpanOptions:
    """Options from the command line; exits with status 2 and a usage line when they are wrong."""
    found = parser.parse(made, argv, {"-p": "pids", "-t": "tids"})
    return SpanOptions(**vars(found))


def run(measure: str, title: str, options: SpanOptions) -> int:
    """Measure, print, and return the exit status.

    Args:
        measure: one of `purebpf.kernel.instruments.latency_histograms.MEASURES`.
        title: the line that a terminal shows first.
        options: whose spans, and how to print them.
    """
    from purebpf.cli.loss import of_table, tell
    from purebpf.measure.child import Child
    from purebpf.measure.privileges import needing
    from purebpf.measure.stop import Stop

    with ExitStack() as stack:
        output = stack.enter_context(Output(options.output))
        stop = stack.enter_context(Stop())
        child = stack.enter_context(Child(options.command)) if options.command else None
        with needing("CAP_BPF", "CAP_PERFMON"):
            spans = stack.enter_context(_spans(measure, options, child.pid if child else 0))
        command.say(title)
        spans.start()
        if child is not None:
            child.start()
        _watch(spans, options, output, stop, child)
        status = child.end() if child else 0
        loss = losses(spans.stats(), groups=options.groups)
    tell(of_table(loss, _SUBJECT))
    if options.strict and any(each.lost for each in loss.causes if each.name not in _SUBJECT):
        return command.LOSS
    return status


def _spans(measure: str, options: SpanOptions, command_pid: int) -> Spans:
    from purebpf.kernel.instruments.latency_histograms import Spans
    from purebpf.measure import targets

    with targets.chosen(options, command_pid=command_pid) as whose:
        return Spans(
            measure,
            by=options.by,
            unit_ns=options.unit[1],
            groups=options.groups,
            whose=whose,
            include_idle=options.include_idle,
        )


def _watch(
    spans: Spans, options: SpanOptions, output: Output, stop: Stop, child: Child | None
) -> None:
    """Print each result; the last one when the run is over."""
    from purebpf.kernel.host.cgroups import paths_by_id
    from purebpf.measure import wait

    ends = (stop, child) if child else (stop,)
    before: dict[int, tuple[int, list[int]]] = {}
    started = last = time.monotonic()
    shown = 0
    is_over = False
    while not is_over:
        shown += 1
        deadline = None if options.interval_s is None else started + shown * options.interval_s
        is_over = wait.until(None, ends, pause=deadline) or shown == options.times
        if is_over:
            spans.stop()
        now, then = spans.read(), time.monotonic()
        cgroups = paths_by_id() if options.by == "cgroup" else {}
        found = spans.distributions(now, before, cgroups)
        loss = losses(spans.stats(), groups=options.groups)
        output.write(_rendered(found, options, then - last, loss))
        before, last = now, then


def _rendered(
    found: Sequence[Distribution], options: SpanOptions, elapsed_s: float, loss: Loss
) -> Iterable[str]:
    unit, unit_ns = options.unit
    if options.format == "json":
        import json

        from purebpf.results.shape.distribution import json_document

        about = {"elapsed_s": round(elapsed_s, 3)}
        return [json.dumps(json_document(found, unit_ns, loss, about)) + "\n"]
    return _text(found, options, unit, unit_ns)


def _text(
    found: Sequence[Distribution], options: SpanOptions, unit: str, unit_ns: int
) -> Iterator[str]:
    from purebpf.results.shape.distribution import text

    yield "\n"
    if options.timestamp:
        yield time.strftime("%H:%M:%S\n")
    yield from text(found, unit, unit_ns, totals=options.totals)


def losses(stats: Mapping[str, int], *, groups: int) -> Loss:
    """Every cause, zero or not; `stats` are those of `Spans.stats()`."""
    from purebpf.results import Cause, Loss

    what = {
        "open_at_start": "had begun before the run",
        "in_flight": "had not ended when it did",
        "rows_full": f"found no histogram of {groups}. Raise --groups",
        "names_full": "times a name found no place: the group has none. Raise --groups",
        "switches_missed": "switches to another task were not traced: what they end is missing",
        "storage_failed": "times the kernel had no memory for the state of a task",
        "clock_backwards": "seem to end before they begin; they count with 0 ns",
        "outside_namespace": "times a task of a group had no number in this pid namespace",
        "recursion_misses": "times a program was not run, as it would have interrupted itself",
    }
    return Loss(
        causes=tuple(
            Cause(name, stats[name], f"{stats[name]} {text}") for name, text in what.items()
        )
    )
