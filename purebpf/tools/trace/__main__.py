"""`purebpf trace`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from purebpf.cli import command, event_command
from purebpf.tools.trace.options import Shape, build_parser, parse
from purebpf.tools.trace.request import Options

__all__ = ["build_parser", "main"]

NAME = "purebpf trace"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: Options, view: event_command.EventView, shape: Shape) -> int:
    # what --help and a misspelt option need not pay
    from purebpf.tools.trace.render import JsonPrinter, StracePrinter, TextPrinter
    from purebpf.tools.trace.session import Traces

    follow = partial(event_command.run, partial(Traces, options), options, view)
    doing = "Tracing system calls"
    if view.format == "json":
        return follow(JsonPrinter(), doing)
    if view.format == "strace":
        return follow(StracePrinter(), doing)
    return follow(TextPrinter(times=shape.times, cgroups=shape.cgroups), doing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
