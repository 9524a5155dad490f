"""What docs/formats.md, docs/flamegraph.md and docs/diff.md show works."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest

from purebpf.commands import package_of
from purebpf.formats import FORMATS
from scripts.generate_options import with_formats
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


def test_the_table_has_a_row_for_every_format() -> None:
    page = PAGES["formats"]
    assert page == with_formats(page), "run: python scripts/generate_options.py"
    for name, output_format in FORMATS.items():
        assert f"| `{name}` |" in page
        assert output_format.opens_in in page


def test_the_python_example_runs() -> None:
    run_example(PAGES["formats"])
