"""What docs/runqlat.md and docs/cpudist.md show works."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict

import pytest

from purebpf.cli.latency_command import SpanOptions
from purebpf.measure.latency import losses
from purebpf.tools.cpudist.__main__ import parse as cpudist
from purebpf.tools.runqlat.__main__ import parse as runqlat
from tests.commands.conftest import ROOT

pytestmark = pytest.mark.any_kernel

PAGES = [(ROOT / f"docs/{name}.md").read_text() for name in ("runqlat", "cpudist")]
COMMANDS = re.findall(r"^\$ sudo \.venv/bin/purebpf (\w+)(.*)$", "".join(PAGES), re.MULTILINE)


@pytest.mark.parametrize(("name", "line"), COMMANDS)
def test_every_command_line_parses(name: str, line: str) -> None:
    parse = {"runqlat": runqlat, "cpudist": cpudist}[name]
    assert parse(shlex.split(line, comments=True)) != SpanOptions()


def test_every_word_of_the_loss_line_is_explained() -> None:
    words = [cause.name for cause in losses(defaultdict(int), groups=1).causes]
    assert re.findall(r"^\| `(\w+)` \|", PAGES[0], re.MULTILINE) == words
    for page in PAGES:
        (line,) = re.findall(r"^loss: (.*)$", page, re.MULTILINE)
        assert [word.partition("=")[0] for word in line.split()] == words
