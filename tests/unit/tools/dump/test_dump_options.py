"""The command line of `dump` names one process, several, or a target."""

from __future__ import annotations

import pytest

from purebpf.tools.dump.options import parse


@pytest.mark.parametrize(
    ("words", "pids"),
    [(["185"], (185,)), (["-p", "185"], (185,)), (["185,186"], (185, 186))],
)
def test_processes_are_given_in_either_way(words: list[str], pids: tuple[int, ...]) -> None:
    assert parse(words).pids == pids


@pytest.mark.parametrize(
    "words",
    [[], ["1", "-p", "2"], ["1", "-t", "2"], ["--tree", "--uid", "0"], ["1", "--", "true"]],
)
def test_targets_that_contradict_each_other_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2


def test_json_is_a_format() -> None:
    assert parse(["--json", "1"]) == parse(["--format", "json", "1"])
    assert parse(["--json", "1"]).format == "json"
