"""Every recipe of docs/cookbook/ runs, and prints what its page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

PAGES = {path.stem: path.read_text() for path in sorted(ROOT.glob("docs/cookbook/*.md"))}
RECIPE = re.compile(r"# .+\n(?:.*\n)+?```python\n((?:.*\n)+?)```\n\n```text\n((?:.*\n)+?)```\n")
NEEDS = {
    "asyncio": "perf_event",
    "block-latency": "loop_device",
    "execsnoop": "perf_event",
    "exceptions": "exceptions",
    "linked-objects": "bpftool",
    "malloc": "perf_event",
    "opensnoop": "perf_event",
    "pins": "bpffs",
    "struct-ops": "struct_ops_links",
    "tcpstates": "perf_event",
    "tcx": "tcx",
    "usdt": "python_with_probes",
}
PARAMETERS = [
    pytest.param(name, id=name, marks=pytest.mark.needs(NEEDS.get(name, "bpf"))) for name in PAGES
]


@pytest.mark.needs("bpf", "vmlinux_btf", "clang", "cgroup2")
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_recipe_prints_what_its_page_says(name: str, tmp_path: Path) -> None:
    match = RECIPE.match(PAGES[name])
    assert match
    code, shown = match.groups()
    recipe = tmp_path / f"test_{name}.py"
    recipe.write_text(code)
    is_test = "\ndef test_" in code
    how = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if is_test else ["-W", "error"]
    done = subprocess.run(
        [sys.executable, *how, str(recipe)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )
    printed = re.sub(r"(?m)passed in [\d.]+s$", "passed in 0.31s", done.stdout)
    assert (done.returncode, done.stderr, printed) == (0, "", shown)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_recipe_that_the_index_has(name: str) -> None:
    page = PAGES[name]
    assert page.count("```python") == page.count("\n```text") == 1
    assert f"](cookbook/{name}.md)" in (ROOT / "docs/cookbook.md").read_text()
    assert f"cookbook/{name}.md" in (ROOT / "mkdocs.yml").read_text()
    assert set(NEEDS) <= PAGES.keys()
