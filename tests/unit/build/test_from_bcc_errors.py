"""The tools of examples/from_bcc end with a sentence where a kernel lacks their probe."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import purebpf
from purebpf import build

ROOT = Path(__file__).resolve().parents[3]
TOOLS = sorted((ROOT / "examples/from_bcc").glob("*.py"))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.stem)
@pytest.mark.parametrize("arguments", [[], ["1"]], ids=["alone", "seconds"])
def test_a_missing_probe_is_one_sentence(
    tool: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise purebpf.NotSupportedError("kprobes", "this kernel has none")

    monkeypatch.setattr(build, "load_c", refuse)
    monkeypatch.setattr(sys, "argv", [tool.name, *arguments])
    with pytest.raises(SystemExit, match="kprobes: this kernel has none"):
        runpy.run_path(str(tool), run_name="__main__")
