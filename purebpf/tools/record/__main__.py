"""`purebpf record`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.tools.record.options import build_parser, parse
from purebpf.tools.record.request import RecordOptions, title

if TYPE_CHECKING:
    from purebpf.measure.run import Ends
    from purebpf.tools.record.loss import Recorded
    from purebpf.tools.record.session import Recorder

__all__ = ["build_parser", "main", "paragraphs"]

NAME = "purebpf record"
_USAGE = 2


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run_filtered(parse(argv)))


def _run_filtered(options: RecordOptions) -> int:
    """Run; show a mistake in a filter at its place, on separate lines."""
    if not any(event.filters for event in options.events):
        return _run(options)
    from purebpf.filter import FilterError

    try:
        return _explain_filters(options) if options.explain else _run(options)
    except FilterError as error:
        command.note(f"{NAME}: {error}")
        return _USAGE


def _explain_filters(options: RecordOptions) -> int:
    from purebpf.cli.output import Output
    from purebpf.tools.record.filters import explain_filters

    with Output() as output:
        output.write(explain_filters(options))
    return 0


def _run(options: RecordOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.countdown import counting_down
    from purebpf.measure.run import prepare, run
    from purebpf.tools.record.loss import losses
    from purebpf.tools.record.session import Recorder

    with prepare(partial(Recorder, options), options.command) as (recorder, ends):
        if options.serve is None:
            _announce(options)
            watching = counting_down(options.duration_s, options.command)
            recorded = run(recorder, ends, watching=watching)
        else:
            recorded = _run_live(options.serve, options, recorder, ends)
        status = ends.status()
        _explain(recorded, verbose=options.verbose)
    if options.strict and losses(recorded).any:
        return command.LOSS
    return status


def _announce(options: RecordOptions) -> None:
    if options.duration_s is None and not options.command:
        command.say(f"{title(options)}... Hit Ctrl-C to end.")


def _run_live(
    where: tuple[str, int], options: RecordOptions, recorder: Recorder, ends: Ends
) -> Recorded:
    from purebpf.cli.live import LivePage
    from purebpf.measure.naming import naming_until
    from purebpf.measure.run import run

    with LivePage(where, title(options)) as page:
        command.say(f"live flame graph: {page.url}")
        _announce(options)
        live = recorder.live()

        def show() -> None:
            with naming_until(ends.stop, live.budget):
                live.take()
                page.show(live)

        return run(recorder, ends, show, wait=partial(recorder.wait, at_most_s=1), watching=page)


def _explain(recorded: Recorded, *, verbose: bool) -> None:
    from purebpf.cli.loss import explain_loss
    from purebpf.tools.record.loss import losses, remarks

    for remark in remarks(recorded):
        command.note(remark, indent="    ")
    rejected = f"rejected={recorded.dropped}"
    explain_loss(losses(recorded), "samples", rejected, verbose=verbose)


def paragraphs(recorded: Recorded) -> list[str]:
    """The loss line, and a paragraph for each loss."""
    from purebpf.cli.loss import of_loss
    from purebpf.tools.record.loss import losses

    return of_loss(losses(recorded), "samples", f"rejected={recorded.dropped}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
