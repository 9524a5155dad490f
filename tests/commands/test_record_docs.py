"""What docs/record.md, report.md and sampleip.md show works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import defaultdict
from importlib import import_module

import pytest

from purebpf.record.loss import Recorded, paragraphs
from purebpf.sampleip.loss import losses
from purebpf.sampleip.options import Options
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.any_kernel

PACKAGES = {"record": "record", "report": "reporter", "sampleip": "sampleip"}
PAGES = {name: (ROOT / f"docs/{name}.md").read_text() for name in PACKAGES}
COMMANDS = [
    (name, line)
    for page in PAGES.values()
    for name, line in re.findall(
        r"^\$ (?:sudo )?\.venv/bin/python -m purebpf\.(\w+)(.*)$", page, re.MULTILINE
    )
]


@pytest.mark.parametrize(("name", "line"), COMMANDS)
def test_every_command_line_parses(name: str, line: str) -> None:
    options = import_module(f"purebpf.{PACKAGES[name]}.options")
    assert options.parse(shlex.split(line, comments=True))


@pytest.mark.needs("bpf", "perf_event")
def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGES["record"], re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr


def explained(name: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", PAGES[name].partition("## The lines")[2], re.MULTILINE)


def test_every_word_of_the_recorders_loss_line_is_explained() -> None:
    line = paragraphs(Recorded("x", 0, 0, 0, 0, 0, 0, 0))[0]
    assert explained("record") == re.findall(r"(\w+)=", line)


def test_every_word_of_sampleips_loss_line_is_explained() -> None:
    nothing: dict[str, int] = defaultdict(int)
    causes = [cause.name for cause in losses(nothing, Options())]
    words = ["expected", "seen", *causes, "ring_lost", "sideband_lost"]
    assert explained("sampleip") == words
