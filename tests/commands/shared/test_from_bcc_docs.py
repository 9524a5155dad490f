"""The examples of docs/from-bcc.md run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

PAGE = (ROOT / "docs/from-bcc.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
OBJECTS = {
    "counter.bpf.o": "tests/data/load_counter.bpf.o",
    "calls.bpf.o": "tests/data/stream_calls.bpf.o",
    "kinds.bpf.o": "tests/data/stream_kinds.bpf.o",
    "stacks.bpf.o": "tests/data/load_stacks.bpf.o",
}
COMPILES = pytest.mark.needs("clang")
PARAMETERS = [
    pytest.param(code, marks=COMPILES if "purebpf.build" in code else ()) for code in EXAMPLES
]


@pytest.mark.needs("bpf", "tracefs", "vmlinux_btf")
@pytest.mark.parametrize("code", PARAMETERS, ids=range(len(EXAMPLES)))
def test_every_example_runs(code: str, tmp_path: Path) -> None:
    for name, path in OBJECTS.items():
        shutil.copy(ROOT / path, tmp_path / name)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_the_histogram_is_the_one_shown() -> None:
    example = next(code for code in EXAMPLES if "log2_histogram" in code)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert f"```\n{done.stdout}```" in PAGE


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 8
