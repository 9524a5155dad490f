"""What docs/formats.md, docs/flamegraph.md and docs/diff.md show works."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest

from purebpf.commands import package_of
from purebpf.formats import FORMATS
from tests.commands.conftest import ROOT
from tests.support.pages import run_example

pytestmark = pytest.mark.any_kernel

PAGES = {name: (ROOT / f"docs/{name}.md").read_text() for name in ("formats", "flamegraph", "diff")}
COMMAND = re.compile(r"^\$ (?:sudo )?\.venv/bin/purebpf (\w+)(.*)$", re.MULTILINE)
LINES = [found for page in PAGES.values() for found in COMMAND.findall(page)]


@pytest.mark.parametrize(("name", "arguments"), LINES)
def test_every_command_line_parses(name: str, arguments: str) -> None:
    words = shlex.split(arguments.partition(" > ")[0], comments=True)
    assert importlib.import_module(f"{package_of(name)}.options").parse(words)


def test_every_format_is_explained() -> None:
    table = PAGES["formats"].partition("## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \|", table, re.MULTILINE)
    assert [name for name, _ in rows] == list(FORMATS)
    for name, endings in rows:
        assert set(FORMATS[name].suffixes) == set(re.findall(r"`(\.[\w.]+)`", endings))


def test_the_python_example_runs() -> None:
    run_example(PAGES["formats"])
