"""docs/security.md names tests, and they are there."""

from __future__ import annotations

import re

from tests.support.environment import ROOT

PAGE = (ROOT / "docs/security.md").read_text()


def test_every_test_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"\btest_\w+", PAGE))
    assert len(named) >= 6
    assert named <= {path.stem for path in (ROOT / "tests").rglob("test_*.py")}


def test_every_line_that_says_cannot_names_one() -> None:
    table = PAGE.partition("| Bob cannot |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    assert len(rows) >= 8
    assert all("test_" in row.rpartition("| ")[2] for row in rows)


def test_the_way_to_report_is_there() -> None:
    assert "(../SECURITY.md)" in PAGE
    assert "(docs/security.md)" in (ROOT / "SECURITY.md").read_text()
