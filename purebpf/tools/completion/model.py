"""The words that can follow `purebpf`, read off the parsers of the commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from purebpf.commands import COMMANDS, package_of
from purebpf.formats import FORMATS
from purebpf.tuples import NamedTuple

__all__ = ["Command", "Option", "Value", "describe", "describe_commands"]

_FORMATS = "FORMAT"
_KINDS = {
    **dict.fromkeys(("FILE", "IN", "BEFORE", "AFTER", "OBJECT", "PATH"), "file"),
    **dict.fromkeys(("DIR",), "directory"),
    **dict.fromkeys(("PID", "TID"), "pid"),
    "USER": "user",
    "GROUP": "group",
}
"""By metavar: what a shell can list. Anything else is typed by the user alone."""


class Value(NamedTuple):
    """The value of an option, or a positional argument.

    Attributes:
        name: as help names it.
        kind: "file", "directory", "pid", "user", "group", "choice" or "other".
        choices: of a "choice": all there are.
        optional: whether an option may go without.
    """

    name: str
    kind: str
    choices: tuple[str, ...] = ()
    optional: bool = False


class Option(NamedTuple):
    """An option: its spellings, its help, and its value; None for a switch."""

    flags: tuple[str, ...]
    help: str
    value: Value | None


class Command(NamedTuple):
    """A command of purebpf; `runs_command` if another one may follow behind `--`."""

    name: str
    summary: str
    options: tuple[Option, ...]
    arguments: tuple[Value, ...]
    runs_command: bool


def describe_commands() -> tuple[Command, ...]:
    """Import every command and describe it."""
    return tuple(
        describe(name, summary, import_module(f"{package_of(name)}.__main__").build_parser())
        for name, summary in COMMANDS.items()
    )


def describe(name: str, summary: str, parser: argparse.ArgumentParser) -> Command:
    """Describe the command of a parser."""
    actions = parser._actions  # noqa: SLF001 - argparse has no public way to list them
    return Command(
        name,
        summary,
        tuple(_options(actions)),
        tuple(_value(action) for action in actions if not action.option_strings),
        runs_command="-- command" in (parser.usage or ""),
    )


def _options(actions: list[argparse.Action]) -> Iterator[Option]:
    for action in actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            value = None if action.nargs == 0 else _value(action)
            yield Option(tuple(action.option_strings), _help(action), value)


def _help(action: argparse.Action) -> str:
    """Return the help of an option in one line, without the brackets at its end."""
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return " ".join(text.partition(" (")[0].split())


def _value(action: argparse.Action) -> Value:
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    optional = action.nargs == "?"
    choices = tuple(map(str, action.choices or ()))
    if name == _FORMATS:
        choices = tuple(FORMATS)
    if choices:
        return Value(name, "choice", choices, optional)
    return Value(name, _KINDS.get(name, "other"), (), optional)
