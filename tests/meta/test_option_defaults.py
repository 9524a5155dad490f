"""An option has one default, in the type of its command: a command line and a program measure
the same.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from purebpf.cli import parser
from purebpf.commands import COMMANDS, package_of
from purebpf.tuples import NamedTuple

NEEDED = {
    "dump": ["1"],
    "latency": ["vfs_read"],
    "convert": ["in.json", "-o", "out.html"],
    "diff": ["before.json", "after.json"],
    "view": ["folder"],
    "fleet": ["top"],
    "script": ["a.bt"],
    "new": ["tool"],
    "inspect": ["a.bpf.o"],
    "setup": ["status"],
    "completion": ["bash"],
}
"""The words without which a command does not begin."""

GIVEN = {
    "dump": {"pids"},
    "latency": {"functions"},
    "convert": {"to"},
    "diff": {"before", "after"},
    "view": {"folder", "where"},
    "fleet": {"action", "sides", "listen"},
    "script": {"path"},
    "new": {"name"},
    "inspect": {"path"},
    "setup": {"action"},
    "completion": {"shell"},
    "runqlat": set[str](),
    "top": {"frequency", "by_thread"},
}
"""Fields that those words set; `listen` has a port for each action of fleet. top shows the threads
of a moment: it samples more often than profile, and tells threads apart.
"""


def options_of(command: str) -> ModuleType:
    module = f"{package_of(command)}.options"
    return import_module(module if find_spec(module) else f"{package_of(command)}.__main__")


def differences(value: Any) -> set[str]:
    """Fields, also of tuples in fields, that differ from the default of their type."""
    fields = value._asdict()
    nested = {name for name, field in fields.items() if hasattr(field, "_asdict")}
    different = {name for name in nested if differences(fields[name])}
    others = fields.keys() - nested
    return different | {n for n in others if fields[n] != value._field_defaults.get(n, "none")}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_line_without_options_is_the_default_of_the_types(command: str) -> None:
    parsed = options_of(command).parse(NEEDED.get(command, []))
    parts = (parsed,) if hasattr(parsed, "_asdict") else parsed
    types = [part for part in parts if hasattr(part, "_asdict")]
    if command == "fleet":  # Parsed: the options, and where their answer goes
        types = [parsed.options]
    assert types
    assert set[str]().union(*map(differences, types)) == GIVEN.get(command, set())


class Rate(NamedTuple):
    """Of a test."""

    frequency: int = 49
    kernel: bool = True
    cpus: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


def made() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser()
    group = new.add_argument_group("rate").add_mutually_exclusive_group()
    group.add_argument("--frequency", type=int, help="%(default)s Hertz")
    new.add_argument("--no-kernel", dest="kernel", action="store_false")
    new.add_argument("--cpus", type=int, nargs="*")
    new.add_argument("--name", dest="names", action="append")
    return new


def test_options_take_the_defaults_of_their_fields() -> None:
    new = made()
    parser.take_defaults(new, Rate)
    assert vars(new.parse_args([])) == {**Rate()._asdict(), "names": []}
    assert new.parse_args(["--name", "a", "--name", "b"]).names == ["a", "b"]
    assert new.parse_args([]).names == []
    assert "49 Hertz" in new.format_help()


def test_a_second_default_is_an_error() -> None:
    new = made()
    new.add_argument("--rate", dest="frequency", default=99)
    with pytest.raises(TypeError, match="frequency"):
        parser.take_defaults(new, Rate)
