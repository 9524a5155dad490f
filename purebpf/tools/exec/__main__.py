"""`purebpf exec`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from purebpf.cli import command, event_command
from purebpf.tools.exec.options import Columns, build_parser, parse
from purebpf.tools.exec.request import ExecOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf exec"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: ExecOptions, view: event_command.EventView, columns: Columns) -> int:
    # what --help and a misspelt option need not pay
    from purebpf.tools.exec.render import JsonPrinter, TextPrinter
    from purebpf.tools.exec.session import Processes

    follow = partial(event_command.run, partial(Processes, options), options, view)
    doing = "Following processes"
    if columns.summary:
        from purebpf.tools.exec.summary import ProgramTable

        table = ProgramTable(top=columns.top, format=view.format)
        return follow(table, doing, losses=table.losses)
    if view.format == "json":
        return follow(JsonPrinter(), doing)
    from purebpf.measure.target_names import name_commands

    above = [f"children of {name}" for name in name_commands(options.pids)] if options.tree else []
    text = TextPrinter(
        times=columns.times, cgroups=columns.cgroups, whole=view.verbose, above=above
    )
    return follow(text, doing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
