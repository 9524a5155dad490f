"""`--list [PATTERN]`: prints the names that an option of the command takes, and ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from purebpf.cli import command

__all__ = ["Names", "add_list", "find_events", "fitting"]

Names = Iterable[tuple[str, str]]
"""Names with their kinds: ("sched:sched_switch", "tracepoint")."""
_WILD = frozenset("*?[")
_WIDTH = 44


def add_list(group: argparse._ActionsContainer, what: str, find: Callable[[str], Names]) -> None:
    """Add the option.

    Args:
        group: the group of options that takes these names.
        what: the names, for the help: "events".
        find: returns the names that fit a pattern; "" fits all.
    """
    group.add_argument(
        *("-l", "--list"), metavar="PATTERN", action=_List, find=find,
        help=f"print the {what} that fit PATTERN, or contain it, and exit",
    )  # fmt: skip


def fitting(names: Names, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the names that fit a pattern; without wildcards, the names that contain it."""
    wanted = pattern if _WILD & set(pattern) else f"*{pattern}*"
    for name, kind in names:
        if fnmatchcase(name, wanted):
            yield name, kind


def find_events(pattern: str) -> Names:
    """Return the perf events of this machine that fit a pattern."""
    from purebpf.loader.perf.listed_events import list_events

    return fitting(list_events(), pattern)


class _List(argparse.Action):
    """Prints the names, and exits: with status 1 if none fits."""

    def __init__(self, *args: Any, find: Callable[[str], Names], **more: Any) -> None:
        super().__init__(*args, **more | {"nargs": "?", "default": argparse.SUPPRESS})
        self._find = find

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        _namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        _option: str | None = None,
    ) -> None:
        """Print, and end the command."""
        try:
            status = command.run(parser.prog, lambda: self._print(str(values or "")))
        except ValueError as error:
            parser.error(f"argument -l: {error}")
        sys.exit(status)

    def _print(self, pattern: str) -> int:
        from purebpf.cli.output import Output
        from purebpf.results.model.spelling import printable

        lines = [f"{printable(name):{_WIDTH}} {kind}\n" for name, kind in self._find(pattern)]
        if not lines:
            command.note(f"nothing fits {pattern!r}")
            return command.FAILED
        with Output() as output:
            output.write(lines)
        return 0
