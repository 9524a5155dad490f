"""Cgroups with names that a user chose, as in a delegated subtree: text on root's terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.environment import run
from tests.support.host import cgroups

pytestmark = [pytest.mark.needs("perf_event", "cgroup2")]

NAMES = ("\x1b[2J", "\x9b31m", "x\r<b>", "*", "[x]", "-e", "%s", "\u202e", "\udcff", "n" * 255)


@pytest.fixture(scope="module")
def below() -> Iterator[Path]:
    """A cgroup with such names in it."""
    with cgroups.made() as parent:
        made = []
        try:
            for name in NAMES:
                made.append(parent / name)
                made[-1].mkdir()
            yield parent
        finally:
            for path in made:
                path.rmdir()


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_names_are_text(below: Path, form: str) -> None:
    words = ("-e", "context-switches", "--format", form, "--for-each-cgroup", f"{below.name}/*")
    result = run("stat", *words, "0.2")
    assert result.returncode == 0, result.stderr
    shown = result.stdout + result.stderr
    assert not [char for char in shown if not char.isprintable() and char != "\n"]
    assert "n" * 64 in shown
    if form == "json":
        assert json.loads(result.stdout)
