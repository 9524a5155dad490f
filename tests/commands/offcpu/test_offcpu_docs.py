"""What docs/offcpu.md and docs/wall.md show works."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict

import pytest

from purebpf.measure.sched_trace import Request, Times
from purebpf.measure.time_loss import losses
from purebpf.tools.offcpu import options as offcpu
from purebpf.tools.wall import options as wall
from tests.commands.conftest import ROOT
from tests.support.pages import run_example

pytestmark = pytest.mark.any_kernel

PAGES = {name: (ROOT / f"docs/{name}.md").read_text() for name in ("offcpu", "wall")}
PARSERS = {"offcpu": offcpu.parse, "wall": wall.parse}
COMMANDS = [
    (name, line)
    for name, page in PAGES.items()
    for line in re.findall(rf"^\$ sudo \.venv/bin/purebpf {name}(.*)$", page, re.MULTILINE)
]


@pytest.mark.parametrize(("name", "line"), COMMANDS)
def test_every_command_line_parses(name: str, line: str) -> None:
    assert PARSERS[name](shlex.split(line, comments=True))


@pytest.mark.needs("bpf", "perf_event")
@pytest.mark.parametrize("name", PAGES)
def test_the_python_example_runs(name: str) -> None:
    run_example(PAGES[name])


def test_every_word_of_the_loss_line_is_explained() -> None:
    nothing: dict[str, int] = defaultdict(int)
    times = Times({}, [], {}, {}, {}, nothing, 0, 1, 0, 0, True, 0, 127)
    cells = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| [^|]*\|$", PAGES["offcpu"], re.MULTILINE)
    words = [word.strip("`") for cell in cells for word in cell.split(", ")]
    causes = [cause.name for cause in losses(times, Request()).causes]
    assert words == ["expected", "seen", *causes, "unnamed", "unknown"]
    more = [cause.name for cause in losses(times, Request(on_cpu=True)).causes]
    assert more == [*causes, "samples_full"]
    assert "`samples_full`" in PAGES["wall"]


@pytest.mark.parametrize(("are_shown", "why"), [(True, "moved before"), (False, "Linux 5.15 does")])
def test_sleepers_without_stacks_have_one_reason(are_shown: bool, why: str) -> None:
    times = Times({}, [], {}, {}, {}, defaultdict(int), 0, 1, 3, 0, are_shown, 0, 127)
    (said,) = [cause.what for cause in losses(times, Request()).causes if cause.lost]
    assert why in said
    assert ("moved" in said) is are_shown
