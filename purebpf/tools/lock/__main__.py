"""`purebpf lock`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from purebpf.cli import command, event_command
from purebpf.cli.event_command import EventView
from purebpf.tools.lock.options import LockView, build_parser, parse
from purebpf.tools.lock.request import LockOptions
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.cli.event_lines import Printer

__all__ = ["build_parser", "main"]

NAME = "purebpf lock"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(*parse(argv)))


class _Waits(NamedTuple):
    """The session and the printers of waits: for locks of the kernel, or of programs."""

    session: Callable[[LockOptions, int], Any]
    text: Callable[..., Printer[Any]]
    json: Callable[..., Printer[Any]]
    csv: Callable[..., Printer[Any]]
    title: str


def _waits(*, userspace: bool) -> _Waits:
    # what --help and a misspelt option need not pay for
    from purebpf.tools.lock.render import Csv, Json, LockText, UserCsv, UserJson, UserText

    if userspace:
        from purebpf.tools.lock.user_session import UserLocks

        return _Waits(UserLocks, UserText, UserJson, UserCsv, "Measuring waits in futex(2)")
    from purebpf.tools.lock.session import Locks

    return _Waits(Locks, LockText, Json, Csv, "Measuring waits for locks")


def _run(options: LockOptions, view: EventView, details: LockView) -> int:
    from purebpf.tools.lock.render import Folded

    waits = _waits(userspace=options.userspace)
    make, session = event_command.keep(partial(waits.session, options))
    every = options.interval_s is not None

    def rows() -> Sequence[Any]:
        measured: Sequence[Any] = session().rows
        return measured

    def text() -> Printer[Any]:
        others: dict[str, Any] = {}
        if not options.userspace:
            from purebpf.observe.instruments.kernel_data import has_decoder

            others["cpu_s"] = lambda: session().cpu_s
            others["has_decoder"] = has_decoder()
        else:
            others["others"] = lambda: session().others
            others["old_waits"] = lambda: session().old_waits
            others["at_work"] = lambda: session().at_work
        slow = options.slower_ms is not None
        details_shown = {"every": every, "histogram": details.histogram, "most": details.most}
        return waits.text(rows, options.by, slow=slow, **details_shown, **others)

    printers: dict[str, Callable[[], Printer[Any]]] = {
        "text": text,
        "json": lambda: waits.json(rows, options.by),
        "csv": lambda: waits.csv(rows, every=every),
        "folded": lambda: Folded(rows),
    }
    return event_command.run(make, options, view, printers[view.format](), waits.title)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
