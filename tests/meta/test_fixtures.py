"""The objects that tests read are what clang makes of the sources beside them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.needs("clang", "bpftool")
def test_every_fixture_is_rebuilt_byte_for_byte() -> None:
    command = [sys.executable, ROOT / "scripts/build_fixtures.py", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
