"""`--list` prints the names that fit, and ends the command."""

from __future__ import annotations

import argparse

import pytest

from purebpf.cli.listing import Names, add_list, fitting

NAMES = (("page-faults", "software"), ("sched:sched_switch", "tracepoint"), ("cs", "software"))


def find(pattern: str) -> Names:
    if pattern == "%":
        raise ValueError("unknown group '%'")
    return fitting(NAMES, pattern)


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("purebpf test")
    made.add_argument("duration", nargs="?")
    add_list(made, "events", find)
    return made


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", ["page-faults", "sched:sched_switch", "cs"]),
        ("sched", ["sched:sched_switch"]),
        ("c*", ["cs"]),
        ("[cp]*s", ["page-faults", "cs"]),
        ("CS", []),
    ],
)
def test_a_word_is_contained_and_a_pattern_fits_whole(pattern: str, names: list[str]) -> None:
    assert [name for name, _ in fitting(NAMES, pattern)] == names


@pytest.mark.parametrize("words", [["-l"], ["--list", "s*"], ["--list=page"]])
def test_the_command_ends_with_the_names(
    words: list[str], parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert not ended.value.code
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert {tuple(line.split()) for line in lines} <= set(NAMES)


def test_a_pattern_that_nothing_fits_is_an_error(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["-l", "none"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == "nothing fits 'none'\n"


def test_a_wrong_pattern_is_a_usage_error(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["-l", "%"])
    assert ended.value.code == 2
    assert "argument -l: unknown group" in capsys.readouterr().err


def test_other_words_go_on(parser: argparse.ArgumentParser) -> None:
    assert vars(parser.parse_args(["5"])) == {"duration": "5"}
