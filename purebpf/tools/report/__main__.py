"""`purebpf report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.cli.destination import Destination, ResultOptions, says_when, write
from purebpf.results.model.spelling import printable
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
    from purebpf.results.model.spelling import count_text
    from purebpf.symbols.budget import Budget

    if options.records is not None:
        return _show_records(options, view)
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
        event = printable(name)
        command.say(f"also in the file: {count_text(samples, 'samples')} of {event} (-e {event})")
    for name, records in loaded.records:
        number = count_text(records, "records")
        command.say(f"also in the file: {number} of {printable(name)} (--records shows them)")
    if loaded.profile.about["rejected"]:
        command.say(f"rejected by filters: {loaded.profile.about['rejected']} samples")
    explain_profile(loaded.profile, verbose=view.verbose)
    return command.LOSS if view.strict and loaded.profile.loss.any else 0


def _show_records(options: ReportOptions, view: ResultOptions) -> int:
    """Show the records of programs."""
    from purebpf.cli.output import Output
    from purebpf.observe.saved.perf_data_loader import opened
    from purebpf.observe.saved.program_records import RecordTypes, read_records
    from purebpf.tools.report import records

    member = options.records or ""
    with opened(options.path) as file:
        types = RecordTypes(file)
        if not types.names:
            command.say(f"{file.source} has no records of programs: purebpf record --program FILE")
        for number, spelling in types.names.items():
            name = printable(file.events[number].name)
            command.say(f"records of {name}: {spelling or 'bytes, as the file has no type for it'}")
        for to in view.to:
            found = read_records(file, types)
            as_json = to.format == "json"
            if member:
                counts = records.count_by(found, member)
                write = records.json_counts if as_json else records.table
                pieces = write(counts, member)
            else:
                pieces = records.json_lines(found) if as_json else records.lines(found)
            with Output(to.path) as output:
                output.write(pieces)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
