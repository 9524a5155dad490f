"""The walk from an object file to attached links, as docs/architecture.md draws it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.measure_walk import Walk

SCRIPT = Path(__file__).parents[4] / "scripts/measure_walk.py"
ARCHITECTURE = Path(__file__).parents[4] / "docs/architecture.md"
ROW = re.compile(r"^\|[^|]*\| `([\w.]+)` \| `([\w./]+)` \|", re.MULTILINE)
FIGURE = re.compile(r"through\s+(\d+) functions in (\d+) files, with\s+(\d+) changes of\s+file")

pytestmark = pytest.mark.needs("bpf")


def section() -> str:
    text = ARCHITECTURE.read_text().partition("## The LOAD walk")[2]
    return text.partition("\n## ")[0]


def measure(*options: str) -> Walk:
    """In a process of its own: what other tests left in this one would take other ways."""
    command = [sys.executable, str(SCRIPT), "--list", *options]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    *calls, _figure = printed.splitlines()
    return Walk(tuple(calls))


@pytest.fixture(scope="module")
def walk() -> Walk:
    return measure()


def test_each_hop_is_where_the_page_says_and_in_its_order():
    calls = measure("--read").calls
    hops = [f"{file}:{name}" for name, file in ROW.findall(section())]
    assert len(hops) > 25
    missing = [hop for hop in hops if hop not in calls]
    assert not missing
    places = [calls.index(hop) for hop in hops]
    assert places == sorted(places)


def test_the_walk_is_short(walk: Walk):
    assert len(walk.functions) <= 70
    assert walk.changes <= 120


def test_the_page_has_the_figure(walk: Walk):
    (figure,) = FIGURE.findall(section())
    assert tuple(map(int, figure)) == (len(walk.functions), len(walk.files), walk.changes)
