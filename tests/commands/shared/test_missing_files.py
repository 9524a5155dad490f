"""A file that does not exist is named in a sentence, whichever command was to read it."""

from __future__ import annotations

import pytest

from tests.support.environment import run, said

LINES = (
    *("agent --check --config", "convert", "diff tests/data/stacks.folded", "inspect", "report"),
    *("inspect tests/data/load_counter.bpf.o --btf", "script", "triage --load", "types -i", "view"),
    *("vmlinux --btf", "vmlinux --for"),
)


@pytest.mark.parametrize("line", LINES)
def test_a_missing_file_is_named(line: str) -> None:
    name, *words = line.split()
    done = run(name, *words, "nowhere.file")
    assert done.returncode == 1
    assert "nowhere.file" in said(done)
    assert "Traceback" not in done.stderr
