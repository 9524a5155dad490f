"""docs/api.md and docs/attach-options.md, from which the API reference is made."""

from __future__ import annotations

import re
from pathlib import Path

import purebpf

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/api.md"
ATTACH = ROOT / "docs/attach-options.md"


def test_every_public_name_has_its_place() -> None:
    listed = re.findall(r"^::: purebpf\.(\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted({*purebpf.__all__} - {"__version__"})


def test_every_way_to_attach_has_its_place() -> None:
    modules = ROOT.glob("purebpf/kernel/attach/*.py")
    ways = {path.stem for path in modules if "\ndef attach(" in path.read_text()} - {"__init__"}
    listed = re.findall(
        r"^::: purebpf\.kernel\.attach\.(\w+)\.attach$", ATTACH.read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted(ways)
