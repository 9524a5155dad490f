"""Command lines in the pages are understood by the commands."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from purebpf.commands import COMMANDS, package_of
from purebpf.measure import named_targets

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in ROOT.glob("docs/*.md"))]
FOR_NEWCOMERS = {"README.md", "docs/answers.md", "docs/gallery.md", "docs/tutorial.md"}
"""Only these have whole command lines within sentences."""
PID = re.compile(r"PID|\$!")
NEED_ARGUMENTS = {"convert", "diff", "dump", "fleet", "inspect", "latency", "new", "setup", "view"}
NEED_ARGUMENTS |= {"script"}
"""These are named without them, too."""

SPAN = re.compile(r"`(?:sudo )?purebpf (\w+)([^`]*)`")
SHELL = re.compile(r" \|\| true| &$| > [\w.]+$")
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^(?:\$ )?(?:sudo )?(?:[\w./-]+/)?purebpf (\w+)(.*)$", re.MULTILINE)


def command_lines() -> set[tuple[str, str]]:
    """Commands and their arguments; shells' own words behind them are cut off."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        if page in FOR_NEWCOMERS:
            found += SPAN.findall(BLOCK.sub("", text))
        for block in BLOCK.findall(text):
            found += LINE.findall(block)
    return {(name, SHELL.split(rest)[0].strip()) for name, rest in found if "[" not in rest}


LINES = sorted(command_lines())


@pytest.mark.parametrize(("name", "rest"), LINES)
def test_a_command_line_parses(name: str, rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in COMMANDS
    monkeypatch.setattr(named_targets, "container_cgroup", lambda _: "/sys/fs/cgroup")
    monkeypatch.setattr(named_targets, "processes_named", lambda _: (185,))
    command = import_module(f"{package_of(name)}.__main__")
    arguments = shlex.split(PID.sub("4711", rest), comments=True)
    if name == "setup":
        arguments = ["root" if word == "ann" else word for word in arguments]
    if arguments or name not in NEED_ARGUMENTS:
        command.parse(arguments)


def test_there_are_many() -> None:
    assert len(LINES) > 150
