"""`purebpf io`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.tools.io.options import IoView, build_parser, parse
from purebpf.tools.io.request import IoOptions

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer
    from purebpf.tools.io.event import IoRow, Request

__all__ = ["build_parser", "main"]

NAME = "purebpf io"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: IoOptions, view: EventView, details: IoView) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.tools.io.render import IoText, Json
    from purebpf.tools.io.session import Io

    make, session = event_command.keep(partial(Io, options))

    def rows() -> Sequence[IoRow]:
        return session().rows[: details.top]

    printer: Printer[Request] = IoText(
        rows, options.by, slow=options.slower_ms is not None, histogram=details.histogram
    )
    if view.format == "json":
        printer = Json(rows, options.by)
    return event_command.run(make, options, view, printer, "Measuring block devices")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
