"""What docs/filter.md and docs/setup.md show works."""

from __future__ import annotations

import re
import shlex

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter import FilterError, parse
from purebpf.filter.fields import CONSTANTS, FIELDS
from purebpf.observe.filters.sample_filter import SampleFilter, kernel_access
from purebpf.tools.setup import options
from tests.support.environment import ROOT
from tests.support.pages import run_example

PAGE = (ROOT / "docs/filter.md").read_text()
SETUP = (ROOT / "docs/setup.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
FILTERS = [line for kind, text in BLOCKS if kind == "filter" for line in text.splitlines()]


@pytest.mark.parametrize("text", FILTERS)
def test_every_filter_parses(text: str) -> None:
    assert parse(str(parse(text))).root == parse(text).root


@pytest.mark.parametrize("block", [text for kind, text in BLOCKS if kind == "error"])
def test_mistakes_are_shown_as_printed(block: str) -> None:
    text, said = block.split("\n---\n")
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert str(caught.value) == said.rstrip("\n")


@pytest.mark.needs("bpf", "vmlinux_btf")
@pytest.mark.parametrize("block", [text for kind, text in BLOCKS if kind == "explain"])
def test_the_listing_is_that_of_the_filter(block: str) -> None:
    if kernel_access().cast is None:
        pytest.skip("the page shows a kernel that prepares samples (Linux 6.3)")
    text, shown = block.split("\n---\n")
    with SampleFilter(parse(text), bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_CPU) as chosen:
        found = chosen.explain()
    assert _without_offsets(shown.rstrip("\n")) in _without_offsets(found)


def _without_offsets(text: str) -> str:
    return re.sub(r"\(r6 \+ \d+\)", "(r6 + N)", text)


@pytest.mark.needs("bpf", "perf_event")
def test_the_python_example_runs() -> None:
    found = run_example(PAGE)
    assert re.match(r"\d+ samples, \d+ kept\n +\d+ rejected by ip < ", found)


def test_every_field_and_constant_is_listed() -> None:
    for name in FIELDS:
        assert f"`{name}`" in PAGE
    for field, names in CONSTANTS.items():
        if field != "mem_lvlnum":
            assert f"`{field}` {' '.join(names)}" in " ".join(PAGE.split())


_LINE = re.compile(r"^\$ (?:sudo )?\.venv/bin/purebpf setup(.*)$", re.MULTILINE)


@pytest.mark.parametrize("line", _LINE.findall(SETUP))
def test_every_command_line_parses(line: str) -> None:
    assert options.parse(shlex.split(line)).action in line
