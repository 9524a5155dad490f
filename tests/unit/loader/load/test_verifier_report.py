"""The report of Linux 7.3's verifier is told apart from the line that decided.

The logs are those of Debian's 7.3~rc7, in a guest.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from purebpf.loader.load.verifier import explain
from purebpf.loader.load.verifier_report import Report, split_report

LOGS: dict[str, str] = json.loads(
    (Path(__file__).parents[3] / "data/verifier_logs/7.3.json").read_text()
)
OLD: dict[str, str] = json.loads(
    (Path(__file__).parents[3] / "data/verifier_logs/7.2.json").read_text()
)
REPORTED = [name for name, log in LOGS.items() if "Verification failed:" in log]
NULL_CHECK = (
    "Add a NULL check before the access and dereference the pointer only on the non-NULL path."
)


def test_some_refusals_have_a_report_and_others_have_not() -> None:
    assert 10 < len(REPORTED) < len(LOGS)


@pytest.mark.parametrize("name", LOGS)
def test_the_line_that_decides_is_the_one_of_older_kernels(name: str) -> None:
    """But for what each kernel calls an address, a bound or a list of types."""
    explanation = explain(LOGS[name])
    assert explanation.line.split()[:2] == explain(OLD[name]).line.split()[:2]
    assert explanation.source == explain(OLD[name]).source


@pytest.mark.parametrize("name", REPORTED)
def test_each_part_of_a_report_is_read(name: str) -> None:
    log, report = split_report(LOGS[name])
    assert "Verification failed" not in log
    assert not {"Reason:", "At:", "Causal path:", "Suggestion:"} & set(log.splitlines())
    assert log.rstrip().splitlines()[-1].startswith("processed ")
    assert ": " in report.title
    assert report.reason.endswith(".")
    assert report.suggestion.endswith(".")
    explanation = explain(LOGS[name])
    assert explanation.suggestion == report.suggestion
    assert explanation.line not in report.suggestion
    assert (report.instruction, report.source) == (explanation.instruction, explanation.source)
    assert report.source.startswith("load_advice.bpf.c:")


def test_a_report_word_for_word() -> None:
    _, report = split_report(LOGS["unchecked_value"])
    assert report == Report(
        "Register Type Safety: Invalid dereference",
        "R0 may be NULL here (a nullable map value pointer). The program could dereference NULL on "
        "this path, so the verifier cannot prove this access is safe.",
        NULL_CHECK,
        7,
        "load_advice.bpf.c:35: v->count++;",
    )


def test_a_report_alone_gives_its_reason() -> None:
    log = LOGS["unchecked_value"]
    explanation = explain(log[log.index("Verification failed:") :])
    assert explanation.line.startswith("R0 may be NULL here (a nullable map value pointer).")
    assert (explanation.instruction, explanation.source) == (7, "load_advice.bpf.c:35: v->count++;")


@pytest.mark.parametrize("word", ["At:", "Source context", "Causal path:", "Suggestion:"])
def test_a_log_that_begins_inside_of_a_report_takes_no_suggestion_for_a_reason(word: str) -> None:
    log = LOGS["unchecked_value"]
    explanation = explain(log[log.index(word) :])
    assert explanation.line == ""
    assert explanation.suggestion == NULL_CHECK


def test_a_log_that_ends_inside_of_a_report_still_decides() -> None:
    log = LOGS["unchecked_value"]
    begin = len(log[: log.index("Verification failed:")].splitlines())
    for end in range(begin, len(log.splitlines())):
        cut = "\n".join(log.splitlines()[:end])
        assert explain(cut).line == "R0 invalid mem access 'map_value_or_null'"


def test_a_line_behind_a_report_decides() -> None:
    log = LOGS["leaked_record"]
    assert log.index("Suggestion:") < log.index("BPF_EXIT instruction")
    assert explain(log).line == "BPF_EXIT instruction in main prog would lead to reference leak"


@pytest.mark.parametrize("name", OLD)
def test_a_log_of_older_kernels_is_left_alone(name: str) -> None:
    assert split_report(OLD[name]) == (OLD[name], Report())
