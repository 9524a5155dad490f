"""What docs/library.md shows works."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import purebpf

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/library.md").read_text()
NOT_HERE = ("gc__start", "struct_ops")
"""Blocks with these words want programs and probes of other objects: tests of those have them."""

EXAMPLES = [
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    if not any(word in block for word in NOT_HERE)
]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """What the examples take for granted: those before them, an object that has seen events."""
    shutil.copy(ROOT / "tests/data/load_library.bpf.o", tmp_path / "opensnoop.bpf.o")
    monkeypatch.chdir(tmp_path)
    spec = purebpf.read_object("opensnoop.bpf.o").set(target_pid=os.getpid())
    programs = ("on_open", "on_sample", "filter", "list_tasks")
    with purebpf.load(spec.only(*programs)) as obj:
        with obj.programs["on_open"].attach():
            os.getppid()
        given = {"__name__": __name__, "purebpf": purebpf, "spec": spec, "obj": obj}
        given |= {"packet": bytes(64), "counts": obj.maps["counts"]}
        given["values"] = numpy.zeros(1, [("delta_size", "u2")])
        yield given
        if "link" in given:
            given["link"].close()
        given.clear()  # arrays hold the memory of maps


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.splitlines()[0][:40])
def test_every_example_runs(example: str, names: dict[str, object]) -> None:
    example = example.replace("pid=4711", f"pid={os.getpid()}").replace("timeout=1.0", "timeout=0")
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    running = eval(compile(example, "docs/library.md", "exec", flags, dont_inherit=True), names)
    if running is not None:
        with suppress(TimeoutError):  # records come for ever
            asyncio.run(asyncio.wait_for(running, 0.1))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 13
