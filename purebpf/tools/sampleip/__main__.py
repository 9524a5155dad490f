"""`purebpf sampleip`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.tools.sampleip.options import build_parser, parse
from purebpf.tools.sampleip.request import SampleIpOptions, title

if TYPE_CHECKING:
    from purebpf.loader.perf.perf_event import Event
    from purebpf.tools.sampleip.session import IpCounts

__all__ = ["build_parser", "main"]

NAME = "purebpf sampleip"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: SampleIpOptions) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.cli.countdown import counting_down
    from purebpf.measure.run import prepare, run
    from purebpf.observe.symbols.interruptible import interruptible
    from purebpf.tools.sampleip.session import Sampler
    from purebpf.tools.sampleip.shown import shown

    make = partial(Sampler, options)
    with (
        Output(options.output) as output,
        prepare(make, options.command, output.reader) as (sampler, ends),
    ):
        until = "" if options.duration_s or options.command else "... Hit Ctrl-C to end."
        command.say(title(options) + until)
        with shown(output, options) as lines:
            rest, result = run(
                sampler,
                ends,
                lambda: lines.show(sampler.drain()),
                watching=counting_down(options.duration_s, options.command),
                naming=interruptible(sampler.budget),
            )
            status = ends.status()
            lines.show(rest)
            lines.end(result.rows)
        _explain(sampler.event, result, verbose=options.verbose)
    return command.LOSS if options.strict and result.loss.any else status


def _explain(event: Event, result: IpCounts, *, verbose: bool) -> None:
    """Print the event, the fate of the samples, and the loss line."""
    from purebpf.cli.loss import explain_loss

    instead = f" (this machine has no PMU event {event.asked})" if event.fell_back else ""
    stats = result.stats
    inside = stats["seen"] - stats["others"] - stats["outside"]
    command.say(f"event: {event.name}{instead}")
    command.say(f"samples: {inside} in the ranges, {stats['outside']} outside")
    if result.program:
        command.say(result.program)
    explain_loss(result.loss, "samples", verbose=verbose)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
