"""The checked-in layouts are those of the headers on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.runtimes.cpython.layouts import LAYOUTS
from tests.support.programs import pythons

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("script", ["generate_cpython.py", "generate_cpython_tasks.py"])
@pytest.mark.parametrize("python", pythons.with_gil(), ids=lambda python: python.path)
def test_layouts_are_those_of_the_headers(python: pythons.Python, script: str) -> None:
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    headers = subprocess.check_output([python.path, "-c", code], text=True).strip()
    if not (Path(headers) / "internal").is_dir():
        pytest.skip(f"{headers} has no internal headers")
    assert python.version in LAYOUTS
    command = [sys.executable, ROOT / "scripts" / script, "--check", headers]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
