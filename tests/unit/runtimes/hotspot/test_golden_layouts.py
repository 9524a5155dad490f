"""The JVMs of this machine describe the layouts that are expected of their versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import jvms

SCRIPT = Path(__file__).parents[4] / "scripts/generate_runtime.py"


@pytest.mark.skipif(not jvms.every(), reason="there is no JVM")
@pytest.mark.parametrize("home", jvms.params())
def test_a_jvm_describes_its_golden_layout(home: Path) -> None:
    assert jvms.golden_of(home) is not None
    subprocess.run([sys.executable, SCRIPT, "--check", home], check=True)


@pytest.mark.parametrize("content", [None, b"\x7fELF"])
def test_a_folder_without_a_jvm_fails(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "libjvm.so").write_bytes(content)
    command = [sys.executable, SCRIPT, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "libjvm.so" in done.stderr
    assert "Traceback" not in done.stderr
