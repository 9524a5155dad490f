"""Every recipe of docs/cookbook.md runs, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

PAGE = (ROOT / "docs/cookbook.md").read_text()
RECIPES = re.findall(
    r"^## (.+)\n(?:.*\n)+?```python\n((?:.*\n)+?)```\n\n```text\n((?:.*\n)+?)```",
    PAGE,
    re.MULTILINE,
)
NEEDS = {
    "Packets of an interface, beside other programs": "tcx",
    "Programs that stay: pin, find again, update": "bpffs",
    "Several files: linked objects": "bpftool",
    "A program that gives up: BPF exceptions": "exceptions",
    "What a Python process does: static probes": "python_with_probes",
}
PARAMETERS = [
    pytest.param(code, shown, id=name, marks=pytest.mark.needs(NEEDS.get(name, "bpf")))
    for name, code, shown in RECIPES
]


@pytest.mark.needs("bpf", "vmlinux_btf", "clang", "cgroup2")
@pytest.mark.parametrize(("code", "shown"), PARAMETERS)
def test_a_recipe_prints_what_the_page_says(code: str, shown: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", shown)


def test_no_recipe_is_left_out() -> None:
    assert len(RECIPES) == PAGE.count("```python") == len(re.findall("^## ", PAGE, re.MULTILINE))
    assert set(NEEDS) <= {name for name, _, _ in RECIPES}
