"""bpftrace's runtime tests: the lists of names, the reader, and the comparison with a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import check_conformance
from scripts.check_conformance import Lists, read_names
from scripts.conformance_cases import Case, is_as_expected, read_cases

MOST = {check_conformance.HERE: 10, check_conformance.IN_GUESTS: 2}
"""The numbers of names in the lists of failing tests. They may only shrink."""
BLOCKS = """\
# a comment
NAME first
PROG begin {
       exit(); }
EXPECT one
       two
EXPECT_NONE three
ARCH !mips
TIMEOUT 1

NAME second
RUN {{BPFTRACE}} -e 'kprobe:f { }'
AFTER pkill bpftrace
EXPECT_JSON wanted.json
"""


@pytest.mark.parametrize("lists", MOST, ids=["here", "in guests"])
def test_the_lists_of_failing_tests_only_shrink(lists: Lists) -> None:
    tests, failing = (read_names(path) for path in lists)
    assert len(failing) == MOST[lists]
    for names in (tests, failing):
        assert names == sorted(set(names))
        assert all("." in name for name in names)
    assert set(failing) <= set(tests)


def test_verdicts_that_the_list_does_not_expect_are_named() -> None:
    verdicts = {"a.one": "pass", "a.two": "fail", "a.three": "pass", "a.four": "timeout"}
    assert check_conformance.compare(verdicts, {"a.three", "a.four"}) == [
        "passes, take it off the list: a.three",
        "fail: a.two",
    ]


def test_a_run_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = Lists(tmp_path / "tests", tmp_path / "failing")
    lists.tests.write_text("a.one\na.two\na.four\n")
    lists.failing.write_text("# names\na.two\n")
    monkeypatch.setattr(check_conformance, "HERE", lists)
    rows = [{"suite": "a", "name": "one", "verdict": "pass"},
            {"suite": "a", "name": "two", "verdict": "skip"},
            {"suite": "a", "name": "three", "verdict": "fail"}]  # fmt: skip
    results = tmp_path / "results"
    results.write_text(json.dumps(rows))
    assert check_conformance.main([str(results)]) == 1
    assert capsys.readouterr().out == "not run: a.four\n1 of 3 tests pass (33.3 %)\n"
    assert check_conformance.report(rows, lists, is_whole=False) == 0
    assert capsys.readouterr().out == "1 of 2 tests pass (50.0 %)\n"


@pytest.fixture
def cases(tmp_path: Path) -> list[Case]:
    (tmp_path / "suite").write_text(BLOCKS)
    return read_cases(tmp_path)


def test_tests_are_read(cases: list[Case]) -> None:
    first, second = cases
    assert (first.name, second.name) == ("suite.first", "suite.second")
    assert first.source == "begin {\n  exit(); }"
    assert first.expects == [("EXPECT", "one\ntwo"), ("EXPECT_NONE", "three")]
    assert (first.missing(set()), second.missing(set())) == ("", "kprobe")
    assert not second.missing({"kprobe", "fentry"})
    assert (first.is_alone, second.is_alone) == (False, True)


def test_a_word_that_is_unknown_is_refused(tmp_path: Path) -> None:
    (tmp_path / "suite").write_text("NAME a\nEXPECTS b\n")
    with pytest.raises(ValueError, match="suite: unknown word EXPECTS"):
        read_cases(tmp_path)


@pytest.mark.parametrize(
    ("word", "text", "output", "wanted"),
    [
        ("EXPECT", "a.c", "x\n a.c \n", True),
        ("EXPECT", "a.c", "abc\n", False),
        ("EXPECT_NONE", "a", "b", True),
        ("EXPECT_REGEX", "^a.c$", "x\nabc\n", True),
        ("EXPECT_REGEX_NONE", "b", "abc", False),
        ("EXPECT_FILE", "text", "two\nlines\n\n", True),
        ("EXPECT_JSON", "one.json", '{"a": [1]}\n', True),
        ("EXPECT_JSON", "one.json", '{"a": [2]}\n', False),
        ("EXPECT_JSON", "one.json", "a\n", False),
        ("EXPECT_JSON", "two.ndjson", '1\n{"b":2}\n', True),
        ("EXPECT_JSON", "two.ndjson", "1\n", False),
    ],
)
def test_outputs_are_judged(
    cases: list[Case], tmp_path: Path, word: str, text: str, output: str, *, wanted: bool
) -> None:
    (tmp_path / "text").write_text("two\nlines\n")
    (tmp_path / "one.json").write_text('{\n"a":\n[1]}\n')
    (tmp_path / "two.ndjson").write_text('1\n{"b": 2}\n')
    assert is_as_expected(cases[0], word, text, output, tmp_path) == wanted
