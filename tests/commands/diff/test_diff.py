"""`purebpf diff`: two files in; a table, a page or an exit status out."""

from __future__ import annotations

import json as reader
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

pytestmark = pytest.mark.any_kernel

BEFORE = "app;main;work 80\napp;main;help 20\n"
AFTER = "app;main;work 150\napp;main;extra 50\n"


def diff(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "purebpf", "diff", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    for name, text in (("before", BEFORE), ("after", AFTER)):
        (tmp_path / name).write_text(text)
    return str(tmp_path / "before"), str(tmp_path / "after")


def test_the_text_has_both_shares_and_their_difference(pair: tuple[str, str]) -> None:
    result = diff("--all", *pair)
    assert result.returncode == 0, result.stderr
    assert "    0.00    25.00   +25.00  extra\n" in result.stdout
    assert "   80.00    75.00    -5.00  work\n" in result.stdout
    assert "vanished (1), with callees:\n   20.00     0.00           help\n" in result.stdout


@pytest.mark.parametrize(("points", "status"), [("24.9", 3), ("25", 0), ("100", 0)])
def test_growth_fails_where_it_shall(pair: tuple[str, str], points: str, status: int) -> None:
    result = diff(*pair, "--fail-over", points)
    assert result.returncode == status
    said = " ".join(result.stderr.split())
    assert ("extra grew by 25.00 percentage points (0.00 to 25.00), more than" in said) == (
        status == 3
    )


def test_a_files_name_says_the_format(pair: tuple[str, str], tmp_path: Path) -> None:
    for name in ("a.json", "a.html", "a.txt"):
        assert diff(*pair, "-o", str(tmp_path / name)).returncode == 0
    assert reader.loads((tmp_path / "a.json").read_text())["worst"] == 25.0
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert "+25.00" in (tmp_path / "a.txt").read_text()


def test_errors_are_one_paragraph(pair: tuple[str, str], tmp_path: Path) -> None:
    result = diff(pair[0], "/no/such", "-o", str(tmp_path / "out"))
    assert result.returncode == 1
    assert "profile /no/such: open(2) failed with ENOENT" in " ".join(result.stderr.split())
    assert sorted(os.listdir(tmp_path)) == ["after", "before"]
    assert diff(*pair, "--fail-over", "200").returncode == 2
