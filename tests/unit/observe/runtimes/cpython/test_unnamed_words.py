"""The loss line of Python frames without names says what happened, and nothing that did not."""

from __future__ import annotations

import pytest

from purebpf.observe.runtimes.cpython.python_tables import why_unnamed


@pytest.mark.parametrize(
    ("lost", "unread", "said"),
    [
        (3, 0, "the names of 3 found no room in a ring that was not read in time"),
        (0, 2, "2 could not be read"),
        (3, 2, "the names of 3 found no room in a ring that was not read in time, and 2 could not"),
    ],
)
def test_only_what_happened_is_said(lost: int, unread: int, said: str) -> None:
    words = why_unnamed(lost, unread)
    assert words.startswith(said)
    assert " 0 " not in f" {words} "
