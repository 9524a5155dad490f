"""What docs/record.md, report.md and sampleip.md show works."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from importlib import import_module

import pytest

from purebpf.commands import package_of
from purebpf.tools.record.__main__ import paragraphs
from purebpf.tools.record.loss import Recorded
from purebpf.tools.sampleip.loss import losses
from purebpf.tools.sampleip.request import SampleIpOptions
from tests.commands.conftest import ROOT
from tests.support.pages import run_example

pytestmark = pytest.mark.any_kernel

PAGES = {name: (ROOT / f"docs/{name}.md").read_text() for name in ("record", "report", "sampleip")}
COMMANDS = [
    (name, line)
    for page in PAGES.values()
    for name, line in re.findall(r"^\$ (?:sudo )?\.venv/bin/purebpf (\w+)(.*)$", page, re.MULTILINE)
]


@pytest.mark.parametrize(("name", "line"), COMMANDS)
def test_every_command_line_parses(name: str, line: str) -> None:
    options = import_module(f"{package_of(name)}.options")
    assert options.parse(shlex.split(line, comments=True))


@pytest.mark.needs("bpf", "perf_event")
def test_the_python_example_runs() -> None:
    run_example(PAGES["record"])


def explained(name: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", PAGES[name].partition("## The lines")[2], re.MULTILINE)


def test_every_word_of_the_recorders_loss_line_is_explained() -> None:
    recorded = Recorded("x", 0, 0, 0, 0, 0, 0, 0, program="own", records=0)
    line = paragraphs(recorded)[0]
    assert explained("record") == re.findall(r"(\w+)=", line)


def test_every_word_of_sampleips_loss_line_is_explained() -> None:
    nothing: dict[str, int] = defaultdict(int)
    causes = [cause.name for cause in losses(nothing, SampleIpOptions())]
    words = ["expected", "seen", *causes, "ring_lost", "sideband_lost"]
    assert explained("sampleip") == words
