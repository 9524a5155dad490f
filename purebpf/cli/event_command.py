"""What commands that print events as they happen share: options, lines, and the run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from purebpf.cli import command, parser
from purebpf.cli.output import Output

if TYPE_CHECKING:
    from purebpf.measure.event_session import EventSession
    from purebpf.results import Loss

__all__ = ["EventView", "Printer", "add_output", "add_targets", "clock", "fit", "run"]

Event = TypeVar("Event")
Event_contra = TypeVar("Event_contra", contravariant=True)


class EventView(NamedTuple):
    """How events look, and where they go. `output` None is standard output."""

    format: str = "text"
    output: str | None = None
    strict: bool = False
    verbose: bool = False


class Printer(Protocol[Event_contra]):
    """Turns events into text; pure.

    `width`: the columns of the terminal that shows the lines; None: they may have any length.
    """

    def begin(self, width: int | None) -> Iterable[str]:
        """What comes before all events."""

    def show(self, events: Iterable[Event_contra]) -> Iterable[str]:
        """Their lines."""

    def end(self, loss: Loss) -> Iterable[str]:
        """What comes after all events."""


def add_targets(made: argparse.ArgumentParser, *, cpus: str) -> argparse._ArgumentGroup:
    """Options `pids`, `tids`, `cpus`, `cgroup` and `tree`; returns their group."""
    group = made.add_argument_group("targets")
    parser.add_targets(group, cpus=cpus)
    group.add_argument(
        "--tree", action="store_true",
        help="children of -p and --comm, too: those that exist, and those to come",
    )  # fmt: skip
    return group


def add_output(made: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Options of `EventView`; returns their group."""
    group = made.add_argument_group("output")
    group.add_argument(
        "--format", choices=("text", "json"), default="text", help="json: an object on each line"
    )
    parser.add_output(group)
    return group


def run(
    make: Callable[[int], EventSession[Event]],
    words: Sequence[str],
    view: EventView,
    printer: Printer[Event],
    title: str,
) -> int:
    """Follow events until the end, print them as they come, and return the exit status.

    Args:
        make: the session, of the number of the child that waits to execute `words` (0: none).
        words: the command; () for none.
        view: where events go.
        printer: makes lines of them.
        title: what standard error says first, where nothing ends the run but Ctrl-C; "" for none.
    """
    from purebpf.cli.loss import explain_table
    from purebpf.measure import run as pipeline

    with (
        Output(view.output) as output,
        pipeline.prepare(make, words, output.reader) as (session, ends),
    ):
        if title:
            command.say(title)
        output.write(printer.begin(_width(output, view)))
        last = pipeline.run(session, ends, lambda: output.write(printer.show(session.drain())))
        status = ends.status()
        output.write(printer.show(last.events))
        output.write(printer.end(last.loss))
        explain_table(last.loss, verbose=view.verbose)
    if view.strict and last.loss.any:
        return command.LOSS
    return status


def _width(output: Output, view: EventView) -> int | None:
    """The columns of the terminal that shows the output; None: none, or `--verbose`."""
    if view.verbose or not output.is_stdout or not sys.stdout.isatty():
        return None
    return os.get_terminal_size(output.fileno()).columns or None


def fit(line: str, width: int | None) -> str:
    """A line, cut to the width with `...` at its end."""
    if width is None or len(line) <= width:
        return line
    return f"{line[: max(width - 3, 0)]}..."


def clock(time_ns: int) -> str:
    """The local time of day in milliseconds, of nanoseconds since 1970."""
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000).astimezone()
    return f"{moment:%H:%M:%S}.{time_ns // 1_000_000 % 1000:03}"
