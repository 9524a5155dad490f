"""`purebpf summary`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.cli.output import Output
from purebpf.tools.summary.options import View, build_parser, parse
from purebpf.tools.summary.request import SummaryOptions

if TYPE_CHECKING:
    from purebpf.measure.stop import HasFileno
    from purebpf.tools.summary.session import Summary
    from purebpf.tools.summary.table import Table

__all__ = ["build_parser", "main"]

NAME = "purebpf summary"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: SummaryOptions, view: View) -> int:
    # 60 ms that --help and a misspelt option need not pay
    from purebpf.cli.countdown import counting_down
    from purebpf.measure.run import prepare, run
    from purebpf.tools.summary.hints import hints
    from purebpf.tools.summary.screen import Screen, screen
    from purebpf.tools.summary.switching import SwitchingSummary

    with Output(view.output) as output:
        make = partial(SwitchingSummary, options)
        with prepare(make, options.command, output.reader) as (summary, ends):
            if options.duration_s is None and not options.command:
                command.say("Counting system calls... Hit Ctrl-C to end.")
            table_screen = screen(output, view, options.mode, has_command=bool(options.command))

            def wait(*sources: HasFileno) -> bool:
                if mode := table_screen.mode_wanted():
                    summary.switch(mode)
                return summary.wait(*sources)

            duration_s = None if isinstance(table_screen, Screen) else options.duration_s
            with counting_down(duration_s, options.command):
                table = run(
                    summary,
                    ends,
                    lambda: table_screen.show(summary.interval()),
                    wait=lambda *_: table_screen.wait(wait, ends),
                    watching=table_screen,
                )
            status = ends.status()
            is_one = view.format == "text" and not view.interval_s
            found = list(hints(table, options.pids)) if is_one else []
            if found and view.layout != "perf":
                output.write(_targets(options, {hint.call for hint in found}))
            table_screen.show_last(table)
            _explain(summary.current, table, verbose=view.verbose)
            for hint in found:
                command.say(hint.text)
    if view.strict and table.loss.any:
        return command.LOSS
    return status


def _targets(options: SummaryOptions, calls: set[str]) -> Iterator[str]:
    """Yield a line for each of these calls: the files and peers that they are about.

    They come from a short look after a run of known length, at processes that still live.
    """
    from purebpf.measure.call_targets import LOOK_S, describe_targets, look
    from purebpf.results.model.spelling import printable
    from purebpf.results.model.width import WIDTH, fold

    if not options.pids or options.duration_s is None:
        return
    targets = look(options.pids)
    for sentence in describe_targets(targets, calls) if targets else ():
        yield f"{fold(f'{printable(sentence)} (in {LOOK_S} s after the run)', WIDTH)}\n"


def _explain(summary: Summary, table: Table, *, verbose: bool) -> None:
    """Print the loss line, and the fix for each loss."""
    from purebpf.cli.loss import explain_table

    if summary.why_not:
        command.note(f"hook: {summary.hook}, as {summary.why_not}")
    if not summary.abis_known:
        command.say("abi: unknown without the kernel's BTF: 32-bit calls count as 64-bit ones")
    explain_table(table.loss, verbose=verbose)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
