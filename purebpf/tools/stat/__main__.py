"""`purebpf stat`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.cli.output import Output
from purebpf.tools.stat.options import Repeats, build_parser, parse
from purebpf.tools.stat.request import StatOptions

if TYPE_CHECKING:
    from purebpf.measure.child import Child
    from purebpf.tools.stat.counts import Result
    from purebpf.tools.stat.session import Counter

__all__ = ["build_parser", "main"]

NAME = "purebpf stat"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: StatOptions, view: EventView, repeats: Repeats) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.loss import explain_table
    from purebpf.tools.stat.render import csv_header, render

    is_interval = options.interval_s is not None
    results: list[Result] = []
    status = 0
    with Output(view.output) as output:
        if view.format == "csv":
            output.write([csv_header()])
        for _ in range(repeats.runs):
            result, last_status, was_stopped = _measure(options, view, output)
            if results and was_stopped:  # half a run
                break
            results.append(result)
            status = status or last_status
            if was_stopped:
                break
        total = results[0] if len(results) == 1 else _average(results)
        output.write(render(total, view.format, is_interval=is_interval))
        for note in total.notes:
            command.note(note)
        explain_table(total.loss, verbose=view.verbose)
        if view.format == "text" and not is_interval:
            from purebpf.tools.stat.hints import hints

            for hint in hints(total, options.pids):
                command.say(hint)
    if view.strict and total.loss.any:
        return command.LOSS
    return status


def _average(results: Sequence[Result]) -> Result:
    from purebpf.tools.stat.repeats import average  # statistics, with decimal and random

    return average(results)


def _measure(options: StatOptions, view: EventView, output: Output) -> tuple[Result, int, bool]:
    """Run once; return the result, the command's status, and True if a signal ended the run."""
    from purebpf.cli.countdown import counting_down
    from purebpf.measure import run as pipeline
    from purebpf.tools.stat.render import render
    from purebpf.tools.stat.session import Counter

    with pipeline.prepare(partial(Counter, options), options.command, output.reader) as (
        session,
        ends,
    ):
        if said := event_command.title("Counting", options):
            command.say(said)
        result = pipeline.run(
            session,
            ends,
            lambda: output.write(render(session.interval(), view.format, is_interval=True)),
            watching=counting_down(options.duration_s, options.command),
        )
        status = ends.status()
        if ends.child is not None:
            is_interval = options.interval_s is not None
            result = _add_usage(result, session, ends.child, is_interval=is_interval)
        return result, status, bool(ends.stop)


def _add_usage(result: Result, session: Counter, child: Child, *, is_interval: bool) -> Result:
    """Return the result with the command's usage, and the time since its execve(2) as the
    duration.
    """
    from purebpf.tools.stat.counts import Usage

    if child.cpu_s is None:
        return result
    result = result._replace(usage=Usage(*child.cpu_s))
    if is_interval:
        return result
    return result._replace(elapsed_s=result.elapsed_s + session.started_s - child.started_s)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
