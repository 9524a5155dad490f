"""What docs/profile.md shows works."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict

import pytest

from purebpf.results.shape.naming_loss import with_naming
from purebpf.symbols.budget import Budget
from purebpf.tools.profile.loss import losses
from purebpf.tools.profile.options import parse
from purebpf.tools.profile.request import ProfileOptions
from tests.commands.conftest import ROOT
from tests.support.pages import run_example

pytestmark = pytest.mark.any_kernel

PAGE = (ROOT / "docs/profile.md").read_text()
COMMANDS = re.findall(r"^\$ sudo \.venv/bin/purebpf profile(.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_line_parses(line: str) -> None:
    assert parse(shlex.split(line, comments=True))


@pytest.mark.needs("bpf", "perf_event")
def test_the_python_example_runs() -> None:
    run_example(PAGE)


def test_every_word_of_the_loss_line_is_explained() -> None:
    nothing: dict[str, int] = defaultdict(int)
    loss = losses(
        nothing, ProfileOptions(), expected=0, tolerance=0, max_depth=127, side_band_lost=0
    )
    loss = with_naming(loss, Budget())
    causes = [cause.name for cause in loss.causes]
    # by `PythonTables.with_python`, where Python frames are read
    causes += ["python_unnamed", "python_cut", "python_merge"]
    words = ["expected", "seen", *causes, "unnamed", "unknown"]
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == words
