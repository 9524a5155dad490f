"""docs/loader-traps.md names tests that exist, for every trap."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs/loader-traps.md"
ROW = re.compile(r"^\| (\d+) \|.*\| ([^|]+) \|$", re.MULTILINE)
NAME = re.compile(r"`([^`]+\.py)::(\w+)`")
COUNT = 80


def test_every_trap_has_tests_that_exist():
    rows = {int(number): NAME.findall(tests) for number, tests in ROW.findall(PAGE.read_text())}
    assert list(rows) == list(range(1, COUNT + 1))
    assert all(rows.values()), "a trap without a test"
    missing = [
        f"{path}::{name}"
        for tests in rows.values()
        for path, name in tests
        if not re.search(rf"^(?:async )?def {name}\(", (TESTS / path).read_text(), re.MULTILINE)
    ]
    assert not missing
