"""Ways to attach that code asks for are ways that there are."""

from __future__ import annotations

import re
from pathlib import Path

import purebpf
from purebpf.loader.features.attach_features import KINDS

ASKED = re.compile(r'have_attach\("([^"]+)"\)')


def test_every_way_that_is_asked_for_is_known() -> None:
    package = Path(purebpf.__file__).parent
    asked = {kind for path in package.rglob("*.py") for kind in ASKED.findall(path.read_text())}
    assert "kprobe.multi" in asked
    assert asked <= {*KINDS}
