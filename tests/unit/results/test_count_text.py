"""Sentences with a number in front."""

from __future__ import annotations

import pytest

from purebpf.results.model.spelling import count_text

ONE = {
    "threads were off the CPU": "1 thread was off the CPU",
    "switches were not traced": "1 switch was not traced",
    "calls are counted without": "1 call is counted without",
    "new tasks could not be followed": "1 new task could not be followed",
    "times had a clock": "1 time had a clock",
    "histories": "1 history",
}


@pytest.mark.parametrize(("text", "one"), ONE.items())
def test_one_is_singular(text: str, one: str) -> None:
    assert count_text(1, text) == one
    assert count_text(2, text) == f"2 {text}"
    assert count_text(0, text) == f"0 {text}"
