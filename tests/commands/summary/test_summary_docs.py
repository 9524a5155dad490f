"""What docs/summary.md shows works."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict

import pytest

from purebpf.tools.summary.loss import losses
from purebpf.tools.summary.options import parse
from purebpf.tools.summary.request import SummaryOptions
from tests.commands.conftest import ROOT
from tests.support.pages import run_example

pytestmark = pytest.mark.any_kernel

PAGE = (ROOT / "docs/summary.md").read_text()
COMMANDS = re.findall(r"^\$ sudo \.venv/bin/purebpf summary(.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_line_parses(line: str) -> None:
    assert parse(shlex.split(line, comments=True))


@pytest.mark.needs("bpf")
def test_the_python_example_runs() -> None:
    run_example(PAGE)


def test_every_word_of_the_loss_line_is_explained() -> None:
    nothing: dict[str, int] = defaultdict(int)
    loss = losses(
        nothing, in_flight=0, still_open=0, misses=0, options=SummaryOptions(map_entries=1)
    )
    cells = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| [^|]*\|$", PAGE, re.MULTILINE)
    words = [word.strip("`") for cell in cells for word in cell.split(", ")]
    assert words == [cause.name for cause in loss.causes]
