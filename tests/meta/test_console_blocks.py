"""Every line of a console block is one that tests try, or is marked here with the reason."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from purebpf.commands import COMMANDS, package_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```console\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^ *\$ (.*)$", re.MULTILINE)
PUREBPF = re.compile(r"(^|/)purebpf(\.pyz)?$")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)

NOT_RUN = {
    "cat": "a file of the reader's host",
    "docker": "no container runtime is on the machines of our tests; the page says so",
    "export": "credentials of the reader",
    "git": "a commit that a release names",
    "perf": "another program: tests/commands/report and record run it, where it is installed",
    "pip": "scripts/clean_install.sh and scripts/release/roots.sh install",
    "pytest": "tests/commands/test_tutorial.py runs it in a new tool",
    "python3": "scripts/release/roots.sh makes a venv",
    "scp": "another host",
    "sha256sum": "scripts/release/release.sh runs it",
    "ssh": "another host",
    "ssh-keygen": "needs the key of a release; scripts/release/release.sh signs with one",
    "xdg-open": "a desktop",
    "zcat": "a file of the reader",
}
"""Programs whose lines no test runs from the page, and what stands in for it."""


def lines() -> list[tuple[str, tuple[str, ...]]]:
    """Page and words of each line, without `sudo`, variables, and `ssh HOST`."""
    found = []
    for page in PAGES:
        for _, block in BLOCK.findall(page.read_text()):
            for line in LINE.findall(block.replace("\\\n", " ")):
                command = line.replace('"$(command -v purebpf)"', "purebpf")
                words = re.sub(r"^(sudo|ssh HOST sudo|ssh HOST|\w+=\S+) ", "", command)
                found.append((page.name, tuple(re.sub(r"^sudo ", "", words).split())))
    return found


LINES = lines()


@pytest.mark.parametrize(("page", "words"), LINES, ids=[f"{p}: {w[0]}" for p, w in LINES])
def test_a_line_is_tried_or_marked(page: str, words: tuple[str, ...]) -> None:
    del page
    program = words[0]
    if PUREBPF.search(program):
        assert words[1] in COMMANDS or words[1].startswith("--")
    elif program == "sh":
        assert (ROOT / words[1]).is_file()
    elif program == "make" and words[1] != "-C":
        assert words[1] in TARGET.findall((ROOT / "Makefile").read_text())
    elif program == "make":
        assert (ROOT / words[2] / "Makefile").is_file()
    elif program.endswith("/python"):
        assert find_spec(words[words.index("-m") + 1])
    elif program == "apt":
        assert words[1] == "install"
    else:
        assert program.rpartition("/")[2] in NOT_RUN


@pytest.mark.parametrize(
    "words", [words for page, words in LINES if page == "install.md" and PUREBPF.search(words[0])]
)
def test_lines_in_tabs_parse(words: tuple[str, ...]) -> None:
    """tests/meta/test_command_lines.py reads blocks that are not indented."""
    arguments = ["4711" if word == "PID" else word for word in shlex.split(" ".join(words[2:]))]
    if arguments and words[1] != "setup":  # setup asks for a user that exists
        assert import_module(f"{package_of(words[1])}.__main__").parse(arguments)


def test_no_mark_is_left_over() -> None:
    programs = {words[0].rpartition("/")[2] for _, words in LINES}
    assert set(NOT_RUN) <= programs
