"""One option means one thing in all commands, and docs/options.md says which have it."""

from __future__ import annotations

import pytest

from purebpf.tools.completion.model import Command, describe_commands
from scripts.generate_options import PAGE, page, vocabulary

DIFFERENT = {
    "--build": "fleet has builds of programs; script writes a file",
    "--by": "the columns that a command can group by",
    "--call-graph": "record knows perf's words, too",
    "--event": "what a command can follow",
    "--kind": "what a command measures: allocations, samples of a store",
    "--key": "lock has the sort keys of perf, and fleet a file of TLS",
    "--list": "script has bpftrace's switch, whose pattern is the file",
    "--layout": "the tools that a command can look like",
    "--format": "what a command can write",
    "--sort": "the columns of a table",
    "--weight": "perf record has a switch of this name",
}
"""Long options with values that differ, and why."""
ALL_THREADS = {"report", "convert", "diff", "view", "inspect", "doctor", "setup"}
ALL_THREADS |= {"completion", "kwork", "agent", "fleet", "new", "vmlinux"}
"""Commands that do not choose what runs."""
NOT_ALL = {
    "--tid": {"triage", "script"},
    "--comm": {"script"},
    "--tree": {"script"},
}
"""Findings are about processes; a predicate of a script chooses by `tid`, `comm` and `ppid`."""


@pytest.fixture(scope="module")
def commands() -> tuple[Command, ...]:
    return describe_commands()


def test_the_page_is_what_the_parsers_say(commands: tuple[Command, ...]) -> None:
    assert PAGE.read_text() == page(commands), "run: python scripts/generate_options.py"


def test_an_option_takes_the_same_value_everywhere(commands: tuple[Command, ...]) -> None:
    several = {
        flag
        for flag, meanings in vocabulary(commands).items()
        if len({_unit(meaning.value) for meaning in meanings}) > 1
    }
    assert several <= DIFFERENT.keys()
    assert {flag for flag, why in DIFFERENT.items() if why} <= several


def test_how_long_is_too_long_has_one_unit(commands: tuple[Command, ...]) -> None:
    meanings = vocabulary(commands)
    for flag in ("--slower", "--least", "--thresh"):
        assert {meaning.value for meaning in meanings[flag]} == {"TIME"}


def test_a_switch_has_no_value_in_another_command(commands: tuple[Command, ...]) -> None:
    both = {
        flag
        for flag, meanings in vocabulary(commands).items()
        if len({bool(meaning.value) for meaning in meanings}) > 1
    }
    assert both == {"--weight", "--list"}


@pytest.mark.parametrize(
    "flag", ["--pid", "--tid", "--comm", "--tree", "--cgroup", "--container", "--uid"]
)
def test_every_command_that_measures_takes_a_target(
    commands: tuple[Command, ...], flag: str
) -> None:
    without = {
        command.name
        for command in commands
        if not any(flag in option.flags for option in command.options)
    }
    expected = ALL_THREADS | NOT_ALL.get(flag, set())
    assert without == expected & {command.name for command in commands}


def _unit(value: str) -> str:
    return {"S": "SECONDS", "PERIOD": "N"}.get(value, value)
