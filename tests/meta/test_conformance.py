"""The list of bpftrace's runtime tests that may fail, and the comparison with a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import check_conformance

MOST = 10
"""The number of names in the list. It may only shrink."""


def test_the_list_of_failing_tests_only_shrinks() -> None:
    names = check_conformance.read_names(check_conformance.LIST)
    assert len(names) == MOST
    assert names == sorted(set(names))
    assert all("." in name for name in names)


def test_verdicts_that_the_list_does_not_expect_are_named() -> None:
    verdicts = {"a.one": "pass", "a.two": "fail", "a.three": "pass", "a.four": "timeout"}
    assert check_conformance.compare(verdicts, {"a.three", "a.four"}) == [
        "passes, take it off the list: a.three",
        "fail: a.two",
    ]


def test_a_run_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list").write_text("# names\na.two\n")
    monkeypatch.setattr(check_conformance, "LIST", tmp_path / "list")
    rows = [{"suite": "a", "name": "one", "verdict": "pass"},
            {"suite": "a", "name": "two", "verdict": "skip"},
            {"suite": "a", "name": "three", "verdict": "fail"}]  # fmt: skip
    (tmp_path / "results").write_text(json.dumps(rows))
    (tmp_path / "names").write_text("a.one\na.two\n")
    results, names = str(tmp_path / "results"), str(tmp_path / "names")
    assert check_conformance.main([results, "--names", names]) == 0
    assert capsys.readouterr().out == "1 of 2 tests pass (50.0 %)\n"
    assert check_conformance.main([results]) == 1
    assert capsys.readouterr().out == "fail: a.three\n1 of 3 tests pass (33.3 %)\n"
