"""`purebpf latency`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.tools.latency.options import LatencyView, build_parser, parse
from purebpf.tools.latency.request import LatencyOptions

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer
    from purebpf.tools.latency.calls import Call, Interval
    from purebpf.tools.latency.render import Result
    from purebpf.tools.latency.session import CallLatency

__all__ = ["build_parser", "main"]

NAME = "purebpf latency"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: LatencyOptions, view: EventView, details: LatencyView) -> int:
    # what --help and a misspelt option need not pay for
    from purebpf.tools.latency import page, render, session
    from purebpf.tools.latency.scale import Scale

    sessions: list[CallLatency] = []

    def make(command_pid: int) -> CallLatency:
        sessions.append(session.CallLatency(options, command_pid))
        return sessions[0]

    def result() -> Result:
        latency = sessions[0]
        return render.Result(
            latency.rows, latency.branches, latency.elapsed_s, latency.walking, latency.notes
        )

    shape = render.Shape(
        options.by,
        options.only_count,
        options.time,
        options.slower_ms is not None,
        options.interval_s is not None,
        details.histogram,
        details.most,
        Scale(options.unit_ns, options.linear, details.fine),
    )
    printers: dict[str, Callable[..., Printer[Call | Interval]]] = {
        "text": render.LatencyText,
        "html": page.Page,
        "folded": render.Folded,
        "json": render.Json,
        "csv": render.Csv,
    }
    printer = printers[view.format](result, shape)
    doing = "Counting calls" if options.only_count else "Timing calls"
    return event_command.run(make, options, view, printer, doing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
