"""What --help says fits a terminal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.environment import installed


@pytest.mark.parametrize("command", sorted(installed()))
def test_help_is_80_columns_wide(command: str) -> None:
    argv = [sys.executable, "-m", "purebpf", command, "--help"]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert said.startswith("usage: ")
    assert [line for line in said.splitlines() if len(line) > 80] == []
