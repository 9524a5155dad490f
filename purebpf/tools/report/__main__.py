"""`purebpf report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.cli.destination import Destination, ResultOptions, says_when, write
from purebpf.tools.report.options import ReportOptions, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf report"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: ReportOptions, view: ResultOptions) -> int:
    from purebpf.cli.loss import explain_profile
    from purebpf.cli.progress import doing
    from purebpf.cli.source_info import add_lines, debuginfod
    from purebpf.observe.saved.perf_data_loader import LoadOptions, read
    from purebpf.results.model.spelling import count_text, printable
    from purebpf.symbols.budget import Budget

    timed = says_when(view.to)
    fetch = debuginfod(wanted=view.debuginfod)
    budget = Budget()
    with doing(f"reading {options.path}"):
        loaded = read(
            options.path, LoadOptions(options.event, options.weight, timed, fetch, budget)
        )
    profile = add_lines(loaded.profile, lines=view.lines, fetch=fetch, budget=budget)
    write(profile, view)
    if Destination("text", None) not in view.to:  # which begins with it
        command.say(printable(loaded.profile.title))
    for name, samples in loaded.others:
        shown = printable(name)
        command.say(f"also in the file: {count_text(samples, 'samples')} of {shown} (-e {shown})")
    if loaded.profile.about["rejected"]:
        command.say(f"rejected by filters: {loaded.profile.about['rejected']} samples")
    explain_profile(loaded.profile, verbose=view.verbose)
    return command.LOSS if view.strict and loaded.profile.loss.any else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
