"""docs/architecture.md and CONTRIBUTING.md are true to the tree: every package, every path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "purebpf"
PAGE = (ROOT / "docs/architecture.md").read_text()
DRAWING = PAGE[PAGE.index("## Packages") : PAGE.index("## The two flows")]

ROW = re.compile(r"^\| `(\w+)/` \| (.+) \|$", re.MULTILINE)
PATH = re.compile(r"`((?:purebpf|tests|docs|scripts|bpf_src|examples|bench|\.ci)/[^`\s*]*)`")
HOP = re.compile(r"`((?:\w+/)+\w+\.py)`")
PLACEHOLDER = re.compile(r"[A-Z]{3,}")
"""NAME in `docs/NAME.md`: a recipe."""


def packages(folder: Path) -> set[str]:
    """Return the names of the packages in a folder."""
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def test_every_package_is_drawn() -> None:
    assert {name for name in packages(PACKAGE) if f"{name}/" not in DRAWING} == set()


def test_every_live_package_has_its_row() -> None:
    live = packages(PACKAGE / "loader") | packages(PACKAGE / "observe")
    assert set(dict(ROW.findall(DRAWING))) == live


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_path_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    named = {name.partition("::")[0] for name in PATH.findall(text) if not PLACEHOLDER.search(name)}
    assert len(named) > 5
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_hop_is_a_file() -> None:
    named = {name for name in HOP.findall(PAGE) if not name.startswith(("tests/", "scripts/"))}
    named = {name.removeprefix("purebpf/") for name in named}
    assert len(named) > 30
    assert {name for name in named if not (PACKAGE / name).exists()} == set()
