"""An option means the same on the command line and in the library: its name and its default."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from purebpf.cli import parser

COMMANDS = {
    **dict.fromkeys(("exec", "io", "kwork", "lock", "offcpu", "open", "profile", "stat"), ()),
    **dict.fromkeys(("summary", "tcp", "trace", "triage", "wall"), ()),
    "latency": ("x",),
    "mem": ("-p", "1"),
}
"""The commands that fill a named tuple of options, with the words that they need."""


class Wanted(NamedTuple):
    """Two fields."""

    pids: tuple[int, ...] = ()
    rows: int = 7


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_has_the_defaults_of_the_library(command: str) -> None:
    made: Any = import_module(f"purebpf.tools.{command}.options").parse(COMMANDS[command])
    parts = made if type(made) is tuple else (made,)
    parsed = next(part for part in parts if type(part).__name__.endswith("Options"))
    differing = {
        name: (getattr(parsed, name), default)
        for name, default in parsed._field_defaults.items()
        if getattr(parsed, name) != default
    }
    assert differing.keys() <= {"functions", "pids"}


def test_a_field_without_an_option_is_an_error() -> None:
    parsed = argparse.Namespace(pids=(3,), row=5)
    with pytest.raises(TypeError, match="fields without an option: rows"):
        parser.pick(Wanted, parsed)
    assert parser.pick(Wanted, parsed, is_partial=True) == Wanted((3,), 7)
