"""`purebpf kwork`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.cli.output import Output
from purebpf.tools.kwork.options import KworkView, build_parser, parse
from purebpf.tools.kwork.request import KworkOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf kwork"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: KworkOptions, view: EventView, details: KworkView) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.countdown import counting_down
    from purebpf.cli.loss import explain_table
    from purebpf.measure import run as pipeline
    from purebpf.tools.kwork.render import Layout, csv_header, render
    from purebpf.tools.kwork.session import Kwork

    if options.each_run:
        return _show_runs(options, view)
    layout = Layout(*details, is_interval=options.interval_s is not None)
    with (
        Output(view.output) as output,
        pipeline.prepare(partial(Kwork, options), options.command, output.reader) as (
            session,
            ends,
        ),
    ):
        if said := event_command.title("Measuring the kernel's own work", options):
            command.say(said)
        if view.format == "csv":
            output.write([csv_header()])
        last = pipeline.run(
            session,
            ends,
            lambda: output.write(render(session.interval(), view.format, layout)),
            watching=counting_down(options.duration_s, options.command),
        )
        status = ends.status()
        output.write(render(last, view.format, layout))
        for note in last.notes:
            command.note(note)
        explain_table(last.loss, verbose=view.verbose)
    if view.strict and last.loss.any:
        return command.LOSS
    return status


def _show_runs(options: KworkOptions, view: EventView) -> int:
    from purebpf.cli.countdown import counting_down
    from purebpf.cli.loss import explain_table
    from purebpf.measure import run as pipeline
    from purebpf.tools.kwork.session import Kwork
    from purebpf.tools.kwork.timehist import header, run_lines

    with (
        Output(view.output) as output,
        pipeline.prepare(partial(Kwork, options), options.command, output.reader) as (
            session,
            ends,
        ),
    ):
        if said := event_command.title("Following the kernel's own work", options):
            command.say(said)
        width = None if view.verbose else output.columns
        output.write(header(view.format))
        last = pipeline.run(
            session,
            ends,
            lambda: output.write(run_lines(session.runs(), view.format, width)),
            watching=counting_down(options.duration_s, options.command),
        )
        status = ends.status()
        output.write(run_lines(session.last_runs, view.format, width))
        for note in last.notes:
            command.note(note)
        explain_table(last.loss, verbose=view.verbose)
    if view.strict and last.loss.any:
        return command.LOSS
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
