"""`purebpf trace`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command, event_command
from purebpf.tools.trace.options import Shape, build_parser, parse
from purebpf.tools.trace.request import TraceOptions

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer
    from purebpf.tools.trace.events import Event

__all__ = ["build_parser", "main"]

NAME = "purebpf trace"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: TraceOptions, view: event_command.EventView, shape: Shape) -> int:
    # what --help and a misspelt option need not pay
    from purebpf.tools.trace.render import JsonPrinter, StracePrinter, TextPrinter
    from purebpf.tools.trace.session import Traces

    printer: Printer[Event] = TextPrinter(times=shape.times, cgroups=shape.cgroups)
    if view.format == "json":
        printer = JsonPrinter()
    elif view.format == "strace":
        printer = StracePrinter()
    if shape.summary:
        from purebpf.tools.trace.summary import SummingPrinter

        printer = SummingPrinter(printer, is_json=view.format == "json")
    make = partial(Traces, options)
    return event_command.run(make, options, view, printer, "Tracing system calls")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
