"""`purebpf lock`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.lock.options import LockView, build_parser, parse
from purebpf.lock.request import Options

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer
    from purebpf.lock.event import Row, Wait

__all__ = ["build_parser", "main"]

NAME = "purebpf.lock"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: Options, view: EventView, details: LockView) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.lock.render import Json, Text
    from purebpf.lock.session import Locks

    make, session = event_command.keep(partial(Locks, options))

    def rows() -> Sequence[Row]:
        return session().rows

    printer: Printer[Wait] = Text(
        rows,
        options.by,
        slow=options.slower_ms is not None,
        histogram=details.histogram,
        most=details.most,
    )
    if view.format == "json":
        printer = Json(rows, options.by)
    return event_command.run(make, options, view, printer, "Measuring waits for locks")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
