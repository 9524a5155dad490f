"""What --help says fits a terminal."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from purebpf.commands import package_of
from tests.support.environment import installed


@pytest.mark.parametrize("command", sorted(installed()))
def test_help_is_80_columns_wide(command: str) -> None:
    argv = [sys.executable, "-m", "purebpf", command, "--help"]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert said.startswith("usage: ")
    assert [line for line in said.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", sorted(installed()))
def test_a_duration_in_the_usage_is_one_that_the_command_takes(command: str) -> None:
    command_parser = import_module(f"{package_of(command)}.__main__").build_parser()
    arguments = {action.dest for action in command_parser._actions if not action.option_strings}
    if "duration" in command_parser.format_usage():
        assert arguments & {"duration", "duration_s", "words"}
