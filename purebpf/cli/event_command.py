"""The common parts of commands that print events as they happen: options, and the run."""

from __future__ import annotations

import argparse
import errno
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from purebpf.cli import command, parser
from purebpf.cli.output import Output
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer
    from purebpf.measure.event_session import Ending as SessionEnding
    from purebpf.measure.session import Session as AnySession
    from purebpf.results import Cause


Event = TypeVar("Event")
Session = TypeVar("Session")


class EventView(NamedTuple):
    """The display of events, and their output. `output` None is standard output."""

    format: str = "text"
    output: str | None = None
    strict: bool = False
    verbose: bool = False


def add_targets(command_parser: argparse.ArgumentParser, *, cpus: str) -> argparse._ArgumentGroup:
    """Options `pids`, `tids`, `cpus`, `cgroup` and `tree`; returns their group."""
    group = command_parser.add_argument_group("targets")
    parser.add_targets(group, cpus=cpus)
    return group


def add_output(
    command_parser: argparse.ArgumentParser, formats: tuple[str, ...] = ("text", "json")
) -> argparse._ArgumentGroup:
    """Options of `EventView`; returns their group."""
    group = command_parser.add_argument_group("output")
    parser.add_format(group, formats, "json: an object on each line")
    parser.add_output(group)
    return group


def add_columns(group: argparse._ArgumentGroup) -> None:
    """Add the options `times` and `cgroups`: optional columns of text."""
    group.add_argument(
        *("-T", "--timestamp"), dest="times", action="store_true", help="the time of each event"
    )
    group.add_argument(
        "--cgroups", action="store_true", help="the container or unit of each process"
    )


if TYPE_CHECKING:

    class EventsOf(AnySession[SessionEnding[Event]], Protocol[Event]):
        """A session that gives events between its start and its end."""

        def drain(self) -> Iterable[Event]:
            """Return the events since the last call."""


class Ending(Protocol):
    """The options that decide when a run ends."""

    @property
    def duration_s(self) -> float | None:
        """None: there is another end."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words behind `--`."""


def keep(make: Callable[[int], Session]) -> tuple[Callable[[int], Session], Callable[[], Session]]:
    """Return a function that makes a session, and one that returns it.

    For a printer that reads the session's sums at the end of a run.
    """
    sessions: list[Session] = []

    def make_and_keep(command_pid: int) -> Session:
        sessions.append(make(command_pid))
        return sessions[0]

    return make_and_keep, lambda: sessions[0]


def title(doing: str, options: Ending) -> str:
    """Return the first line of standard error; "" if the run ends by itself."""
    if options.duration_s is not None or options.command:
        return ""
    return f"{doing}... Hit Ctrl-C to end."


def run(
    make: Callable[[int], EventsOf[Event]],
    options: Ending,
    view: EventView,
    printer: Printer[Event],
    doing: str,
    *,
    losses: Callable[[], Iterable[Cause]] = tuple,
) -> int:
    """Follow events until the end, print them as they come, and return the exit status.

    Args:
        make: the session, of the number of the child that waits to execute the command (0: none).
        options: when it ends, and the command.
        view: where events go.
        printer: makes lines of them.
        doing: the activity for the title, such as "Following processes".
        losses: counts the events that the printer could not display.
    """
    from purebpf.cli.countdown import counting_down
    from purebpf.cli.loss import explain_table
    from purebpf.measure import run as pipeline

    with (
        Output(view.output) as output,
        pipeline.prepare(make, options.command, output.reader) as (session, ends),
    ):
        if said := title(doing, options):
            command.say(said)
        output.write(printer.begin(None if view.verbose else output.columns))
        last = pipeline.run(
            session,
            ends,
            lambda: output.write(printer.show(session.drain())),
            watching=counting_down(options.duration_s, options.command),
        )
        status = ends.status()
        output.write(printer.show(last.events))
        loss = last.loss._replace(causes=(*last.loss.causes, *losses()))
        output.write(printer.end(loss))
        explain_table(loss, verbose=view.verbose)
    if view.strict and loss.any:
        return command.LOSS
    return status


def errno_number(text: str) -> int:
    """The number of an error by its name, for argparse."""
    number = getattr(errno, text.upper(), None)
    if isinstance(number, int):
        return number
    raise argparse.ArgumentTypeError(f"unknown errno {text!r} (known: ENOENT, EACCES, ...)")
