"""docs/api.md, from which the API reference is made."""

from __future__ import annotations

import re
from pathlib import Path

import purebpf

PAGE = Path(__file__).resolve().parents[2] / "docs/api.md"


def test_every_public_name_has_its_place() -> None:
    listed = re.findall(r"^::: purebpf\.(\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted({*purebpf.__all__} - {"__version__"})
