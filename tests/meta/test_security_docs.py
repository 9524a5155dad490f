"""docs/security.md names tests, and they are there."""

from __future__ import annotations

import re

from tests.support.environment import ROOT

PAGE = (ROOT / "docs/security.md").read_text()
_TEXTS = {".py", ".sh", ".c", ".h"}


def test_every_test_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"\btest_\w+", PAGE))
    assert len(named) >= 6
    assert named <= {path.stem for path in (ROOT / "tests").rglob("test_*.py")}


def test_every_line_that_says_cannot_names_one() -> None:
    table = PAGE.partition("| Bob cannot |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    assert len(rows) >= 8
    assert all("test_" in row.rpartition("| ")[2] for row in rows)


def test_every_finding_names_what_proves_that_it_is_gone() -> None:
    table = PAGE.partition("| what was found | test |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    assert len(rows) >= 16
    assert all("`test_" in row for row in rows)


def test_the_way_to_report_is_there() -> None:
    assert "(../SECURITY.md)" in PAGE
    assert "(docs/security.md)" in (ROOT / "SECURITY.md").read_text()


def test_what_is_shown_to_type_does_not_look_for_modules_here() -> None:
    """Without -P, Python imports from the current directory first, which others may write to."""
    files = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    files += (ROOT / "docs").rglob("*.md")
    for folder in ("purebpf", "scripts", "bench", "examples", "bpf_src"):
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in _TEXTS]
    lines = [(path.name, line) for path in files for line in path.read_text().splitlines()]
    unsafe = re.compile(r"""python["\w}.]* -m purebpf\b(?!\.\.\.)""")
    assert len(files) > 400
    assert [(name, line) for name, line in lines if unsafe.search(line)] == []
    assert any("python -P -m purebpf" in line for _, line in lines)


def test_tests_that_the_page_of_fuzzing_names_are_there() -> None:
    text = (ROOT / "docs/fuzzing.md").read_text()
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", text)
    assert len(named) >= 7
    for path, name in named:
        assert f"def {name}(" in (ROOT / "tests/unit" / path).read_text(), name
