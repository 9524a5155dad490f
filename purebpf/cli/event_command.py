"""What commands that print events as they happen share: options, lines, and the run."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from purebpf.cli import command, parser
from purebpf.cli.output import Output

if TYPE_CHECKING:
    from purebpf.measure.event_session import EventSession
    from purebpf.results import Cause, Loss


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


def add_columns(group: argparse._ArgumentGroup) -> None:
    """Options `times` and `cgroups`: columns that text has if it is asked for them."""
    group.add_argument(
        *("-T", "--timestamp"), dest="times", action="store_true", help="the time of each event"
    )
    group.add_argument(
        "--cgroups", action="store_true", help="the container or unit of each process"
    )


def run(
    make: Callable[[int], EventSession[Event]],
    words: Sequence[str],
    view: EventView,
    printer: Printer[Event],
    title: str,
    *,
    losses: Callable[[], Iterable[Cause]] = tuple,
) -> int:
    """Follow events until the end, print them as they come, and return the exit status.

    Args:
        make: the session, of the number of the child that waits to execute `words` (0: none).
        words: the command; () for none.
        view: where events go.
        printer: makes lines of them.
        title: what standard error says first, where nothing ends the run but Ctrl-C; "" for none.
        losses: what the printer could not show.
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
        loss = last.loss._replace(causes=(*last.loss.causes, *losses()))
        output.write(printer.end(loss))
        explain_table(loss, verbose=view.verbose)
    if view.strict and loss.any:
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


def fit_path(columns: str, path: str, width: int | None) -> str:
    """A line that ends with a path, of which the end is what fits."""
    room = None if width is None else width - len(columns)
    if room is None or len(path) <= room:
        return columns + path
    return f"{columns}...{path[len(path) - max(room - 3, 1) :]}"


def errno_name(number: int) -> str:
    """`"ENOENT"` of 2; `"errno 4000"` of one without a name."""
    return errno.errorcode.get(number, f"errno {number}")


def errno_number(text: str) -> int:
    """The number of an error by its name, for argparse."""
    for number, name in errno.errorcode.items():
        if name == text.upper():
            return number
    raise argparse.ArgumentTypeError(f"unknown errno {text!r} (known: ENOENT, EACCES, ...)")


def clock(time_ns: int) -> str:
    """The local time of day in milliseconds, of nanoseconds since 1970."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{rest_ns // 1_000_000:03}"


def timestamp(time_ns: int) -> str:
    """The same moment for JSON: `2026-11-22T23:45:01.123456789Z`."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest_ns:09}Z"


def json_lines(documents: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """A line for each."""
    import json  # which text and --help need not pay

    for document in documents:
        yield json.dumps(document) + "\n"


def event_document(name: str, time_ns: int, fields: Mapping[str, object]) -> dict[str, object]:
    """An event for JSON: what it is called, when it was, and its fields."""
    return {"event": name, "time": timestamp(time_ns), **fields}


def json_loss(loss: Loss) -> Iterator[str]:
    """The last line of a stream of JSON: every counter of what was lost."""
    counts = {cause.name: cause.lost for cause in loss.causes}
    return json_lines([{"event": "loss", "loss": counts}])
