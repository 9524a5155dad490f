"""The pictures of the pages: they are there, they are small, and each is used."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
MOST_BYTES = 100_000


def test_pictures_are_there_and_small() -> None:
    used = set()
    for page in PAGES:
        for text, name in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text()):
            picture = (page.parent / name).resolve()
            assert len(text) > 20, f"{page.name}: {name} says nothing to who cannot see it"
            assert picture.stat().st_size <= MOST_BYTES
            used.add(picture)
    assert used == set(ROOT.glob("docs/images/*"))
