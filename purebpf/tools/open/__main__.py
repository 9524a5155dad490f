"""`purebpf open`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from purebpf.cli import command, event_command
from purebpf.tools.open.options import Shape, build_parser, parse
from purebpf.tools.open.request import OpenOptions

__all__ = ["build_parser", "main"]

NAME = "purebpf open"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: OpenOptions, view: event_command.EventView, shape: Shape) -> int:
    # what --help and a misspelt option need not pay
    from purebpf.tools.open.render import JsonPrinter, TablePrinter, TextPrinter
    from purebpf.tools.open.session import Opens
    from purebpf.tools.open.summary import Summary

    doing = "Following opened files"
    follow = partial(event_command.run, partial(Opens, options), options, view)
    if shape.summary:
        table = TablePrinter(Summary(shape.by), top=shape.top, format=view.format)
        return follow(table, doing, losses=table.losses)
    if view.format == "json":
        return follow(JsonPrinter(), doing)
    return follow(TextPrinter(times=shape.times, cgroups=shape.cgroups), doing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
