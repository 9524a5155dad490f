"""What the pages of the tools show works: their command lines, first examples, and Python."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from purebpf.commands import package_of
from purebpf.measure import named_targets
from tests.commands.conftest import ROOT
from tests.support.pages import run_python

pytestmark = [pytest.mark.any_kernel, pytest.mark.needs("bpf", "perf_event")]

TOOLS = (
    *("trace", "exec", "open", "io", "tcp", "lock", "mem", "latency", "kwork", "stat"),
    *("triage", "sampleip", "top", "types"),
)
PAGES = {name: (ROOT / f"docs/{name}.md").read_text() for name in TOOLS}
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
LINES = [
    (name, line)
    for name, page in PAGES.items()
    for block in CONSOLE.findall(page)
    for line in re.findall(
        rf"^(?:\$ )?(?:sudo )?(?:\S*/)?purebpf {name}\b(.*)$", block, re.MULTILINE
    )
]
EXAMPLES = [name for name, page in PAGES.items() if "```python" in page]


def test_every_page_has_a_command_line() -> None:
    assert {name for name, _ in LINES} == {*TOOLS}


@pytest.mark.parametrize(("name", "line"), LINES)
def test_every_command_line_parses(name: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_targets, "container_cgroup", lambda _: "/sys/fs/cgroup")
    monkeypatch.setattr(named_targets, "processes_named", lambda _: (185,))
    parse = importlib.import_module(f"{package_of(name)}.options").parse
    assert parse(shlex.split(line.replace("\\\\$", "$"), comments=True))


@pytest.mark.parametrize("name", ["exec", "open", "trace"])
def test_the_first_example_prints_what_the_page_shows(name: str) -> None:
    block = CONSOLE.findall(PAGES[name])[0]
    command, *shown = block.splitlines()
    words = shlex.split(command.partition("purebpf ")[2])
    done = subprocess.run(
        [sys.executable, "-m", "purebpf", *words],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=60,
        env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    printed = [*_without_numbers([*done.stdout.splitlines(), *done.stderr.splitlines()])]
    for line in _without_numbers(shown):
        assert line in printed, done.stdout + done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_python_of_the_page_runs(name: str) -> None:
    for code in re.findall(r"```python\n(.*?)```", PAGES[name], re.DOTALL):
        short = re.sub(r"duration_s=\d+", "duration_s=0.2", code)
        run_python(short.replace("185", str(os.getpid())))


def _without_numbers(lines: list[str]) -> Iterator[str]:
    for line in lines:
        times = re.sub(r"\b[\d.]+ ?(ns|us|ms|s)\b", "T", line)
        yield " ".join(re.sub(r"\d+", "N", times).split())
