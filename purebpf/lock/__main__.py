"""`purebpf lock`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.lock.options import LockView, build_parser, parse
from purebpf.lock.request import Options

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer
    from purebpf.lock.event import Row, Wait
    from purebpf.lock.user_event import UserRow, UserWait
    from purebpf.results.model.intervals import Interval

__all__ = ["build_parser", "main"]

NAME = "purebpf.lock"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


def _run(options: Options, view: EventView, details: LockView) -> int:
    if options.userspace:
        return _run_user(options, view, details)
    # what --help and a misspelt option need not pay for
    from purebpf.lock.render import Csv, Folded, Json, Text
    from purebpf.lock.session import Locks

    make, session = event_command.keep(partial(Locks, options))
    every = options.interval_s is not None

    def rows() -> Sequence[Row]:
        return session().rows

    printers: dict[str, Callable[[], Printer[Wait | Interval[Row]]]] = {
        "text": lambda: Text(
            *(rows, options.by),
            slow=options.slower_ms is not None,
            every=every,
            histogram=details.histogram,
            most=details.most,
        ),
        "json": lambda: Json(rows, options.by),
        "csv": lambda: Csv(rows, every=every),
        "folded": lambda: Folded(rows),
    }
    printer = printers[view.format]()
    return event_command.run(make, options, view, printer, "Measuring waits for locks")


def _run_user(options: Options, view: EventView, details: LockView) -> int:
    from purebpf.lock.render import Folded, UserCsv, UserJson, UserText
    from purebpf.lock.user_session import UserLocks

    make, session = event_command.keep(partial(UserLocks, options))
    every = options.interval_s is not None

    def rows() -> Sequence[UserRow]:
        return session().rows

    printers: dict[str, Callable[[], Printer[UserWait | Interval[UserRow]]]] = {
        "text": lambda: UserText(
            *(rows, lambda: session().others, options.by),
            slow=options.slower_ms is not None,
            every=every,
            histogram=details.histogram,
            most=details.most,
        ),
        "json": lambda: UserJson(rows, options.by),
        "csv": lambda: UserCsv(rows, every=every),
        "folded": lambda: Folded(rows),
    }
    printer = printers[view.format]()
    return event_command.run(make, options, view, printer, "Measuring waits in futex(2)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
